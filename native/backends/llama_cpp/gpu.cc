#include "native/backends/llama_cpp/gpu.h"

#include "native/backends/llama_cpp/runtime.h"
#include "native/base/strings.h"

// Defined by BUILD.bazel for platforms with such an accelerator.
#ifdef ELIZA_WITH_CUDA
#include "ggml-cuda.h"
#include "third_party/cuda/cublas.h"
#endif
#ifdef ELIZA_WITH_METAL
#include "ggml-metal.h"
#endif

namespace eliza::llama_cpp {
namespace {

// Adds the devices of `registry` to ggml's, or says why there are none.
[[maybe_unused]] void take(ggml_backend_reg_t registry, const std::string& complaint, Gpus* gpus) {
  const size_t count = registry == nullptr ? 0 : ggml_backend_reg_dev_count(registry);
  if (count == 0) {
    gpus->reason = "no GPU was found (" + complaint + ")";
    return;
  }
  ggml_backend_register(registry);
  for (size_t i = 0; i < count; ++i) gpus->devices.push_back(ggml_backend_reg_dev_get(registry, i));
}

Gpus find() {
  Gpus gpus;
#if defined(ELIZA_WITH_CUDA)
  gpus.reason = cuda::missing_libraries();
  if (!gpus.reason.empty()) return gpus;
  start_runtime();
  const CallScope scope;
  const ggml_backend_reg_t registry = ggml_backend_cuda_reg();
  take(registry, scope.reason(), &gpus);
#elif defined(ELIZA_WITH_METAL)
  start_runtime();
  const CallScope scope;
  const ggml_backend_reg_t registry = ggml_backend_metal_reg();
  take(registry, scope.reason(), &gpus);
#else
  gpus.reason = "this build has no code for GPUs; --config=linux_cuda and --config=macos_metal have";
#endif
  return gpus;
}

}  // namespace

const Gpus& gpus() {
  static const Gpus* const found = new Gpus(find());  // leaked: models that use them may outlive any destructor at exit
  return *found;
}

std::string device_name(ggml_backend_dev_t device) {
  const std::string description = ggml_backend_dev_description(device);
  const std::string name = ggml_backend_dev_name(device);
  return description.empty() ? name : name + " (" + description + ")";
}

std::string device_names(const std::vector<ggml_backend_dev_t>& devices) {
  std::vector<std::string> names;
  for (const ggml_backend_dev_t device : devices) names.push_back(device_name(device));
  return joined(names);
}

}  // namespace eliza::llama_cpp
