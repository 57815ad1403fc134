// A bounded look at a safetensors file before MLX reads it: what it holds, and that nothing in its header lies.
//
//   8 bytes     size of the header, little-endian
//   header      JSON: {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, "__metadata__": {…}}
//   data        the tensors, at those offsets
//
// https://huggingface.co/docs/safetensors. Knows nothing of MLX.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace eliza::mlx {

struct TensorInfo {
  std::string dtype;  // "F32", "BF16", "U32", …
  std::vector<int64_t> shape;
  uint64_t bytes = 0;
};

struct SafetensorsHeader {
  std::map<std::string, TensorInfo> tensors;
  std::map<std::string, std::string> metadata;
  // Of the header, the file's size, and samples of the data: models of a kind differ in these.
  uint64_t fingerprint = 0;
};

// Throws Error(ELIZA_ERR_BUNDLE_INVALID) that names the file, the tensor and what is wrong with it: a file that
// cannot be read, or ends too soon; a header that is too large, no JSON, or has a key twice; a dtype or a shape that
// there is not; offsets outside the file, over another tensor's, or of another size than the shape has.
SafetensorsHeader check_safetensors(const std::string& path);

// The same for a header that was read already, of a file of `file_bytes` called `name` in messages. `header` is the
// JSON.
SafetensorsHeader check_safetensors_header(std::string_view header, uint64_t file_bytes, const std::string& name);

// The size of the header, by the file's first kSafetensorsPrefix bytes. Throws where it cannot be.
inline constexpr uint64_t kSafetensorsPrefix = 8;
uint64_t safetensors_header_bytes(const char* prefix, uint64_t file_bytes, const std::string& name);

}  // namespace eliza::mlx
