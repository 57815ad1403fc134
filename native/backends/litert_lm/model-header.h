// The header of a .litertlm file: what it holds, and what it was made for. Read in bounded code before the runtime sees
// the file, which would take a truncated one for whole.
//
//   "LITERTLM", version (3 × u32), 4 bytes, header_end (u64); then, up to header_end, a flatbuffer (LiteRTLMMetaData of
//   LiteRT-LM's schema/core/litertlm_header_schema.fbs): metadata, and a list of sections with their places.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace eliza::litert_lm {

struct ModelHeader {
  std::vector<std::string> backends;  // what the model may run on: "cpu", "gpu", "npu", …; never empty
  std::string soc;                    // the SoC an NPU's code was compiled for; empty where the header does not say

  bool runs_on(const std::string& backend) const;
};

// Reads at most 64 KiB. Throws Error(ELIZA_ERR_BUNDLE_INVALID) where the file cannot be read, is no such model, is of a
// version that is not known, or shorter than its header says.
ModelHeader read_model_header(const std::string& path);

}  // namespace eliza::litert_lm
