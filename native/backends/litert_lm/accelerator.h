// What a model may run on here: the ladder of ELIZA_LITERT_ACCELERATOR, and which of its rungs this host has. Nothing
// is cached: a model may be downloaded, and a variable set, between two calls.
//
//   auto (or unset)  on Android: the NPU (Google Tensor, Qualcomm, MediaTek), the GPU, the CPU; elsewhere nothing
//   npu, gpu, cpu    that one
//
// The runtime itself cannot be asked: on a host without an NPU it accepts "npu", and runs on the CPU without a word.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "native/backends/litert_lm/library.h"
#include "native/backends/litert_lm/model-header.h"

namespace eliza::litert_lm {

enum class Accelerator { kNpu, kGpu, kCpu };

// "npu", "gpu", "cpu": as the runtime calls its backends, too.
const char* accelerator_name(Accelerator accelerator);

// An NPU 100, a GPU 20, a CPU -1: never over a GGUF.
int accelerator_rank(Accelerator accelerator);

// What is asked of the machine; tests have others.
struct Host {
  bool android = false;
  std::string soc_manufacturer;  // "Google", "QTI", "Mediatek"; empty where the system does not tell
  std::string soc_model;         // "Tensor G4", "SM8750"
  // The file that the loader opens for a name, or a path; empty where it cannot.
  std::function<std::string(const std::string& library)> open;
};

// This machine.
Host this_host();

// Whether two names are of the same SoC: "Tensor_G5" and "Tensor G5" are.
bool same_soc(const std::string& a, const std::string& b);

struct Rung {
  Accelerator accelerator = Accelerator::kCpu;
  bool present = false;
  std::string device;        // "cpu", "gpu", "npu (Qualcomm SM8750)"
  std::string soc;           // of an NPU: "SM8750"
  std::string dispatch_dir;  // of an NPU: where the vendor's dispatch library lies; empty: on the loader's path
  std::string why;           // not present: what was looked for
};

// The rungs that `setting`, the value of the variable ("" for unset), allows, best first, each with whether `host` has
// it. `directories` are searched for a vendor's dispatch library before the loader's path. Throws
// Error(ELIZA_ERR_INVALID_ARG) for a value that is none of the above.
std::vector<Rung> ladder(const std::string& setting, const Host& host, const std::vector<std::string>& directories);

// The ladder of the environment and this machine; a dispatch library may lie beside `library` (null: none).
std::vector<Rung> host_ladder(const Library* library);

// Why none of the rungs is present, and what to do about it.
std::string no_accelerator(const std::vector<Rung>& rungs);

struct Placement {
  std::optional<Rung> rung;  // the first present one that the model fits; nullopt: none
  std::string why;           // then: what does not fit
};

Placement place(const ModelHeader& model, const std::vector<Rung>& rungs);

// Why the model is not placed on a rung above the one that it is placed on; empty where there is no such rung, or none
// that it fits.
std::string passed_over(const ModelHeader& model, const std::vector<Rung>& rungs);

}  // namespace eliza::litert_lm
