#include "native/backends/mlx/mlx.h"

#include <string>
#include <vector>

#include "native/backends/mlx/device.h"
#include "native/base/error.h"
#include "native/bundle/bundle.h"

namespace eliza::mlx {

namespace {

constexpr int kMetalRank = 50;
constexpr int kCpuRank = -1;  // never in place of a GGUF

constexpr char kNoModels[] = "this version of the library links MLX, but cannot run models on it yet; use llama.cpp";

bool has_model(const Bundle& bundle) { return bundle.text_artifact(RuntimeClass::kMlx).has_value(); }

// What is wrong with the bundle's MLX model; empty where there is a good one.
std::string find_fault(const Bundle& bundle) {
  if (has_model(bundle)) return {};
  const std::vector<std::string> coreml = bundle.coreml_packages();
  if (!coreml.empty()) return coreml.front() + " is a CoreML package, and no CoreML runtime is in this build";
  return "the bundle holds no MLX model: no directory in text/, nor text/ itself, has a config.json and *.safetensors";
}

class Factory final : public LlmBackendFactory {
 public:
  const char* name() const override { return "mlx-coreml"; }

  bool available() const override { return choose_device().device.has_value(); }

  // An ambiguous or broken bundle throws, and the selector shows the message.
  bool can_serve(const char* bundle_dir) const override { return has_model(Bundle::open(bundle_dir)); }

  int preference_rank() const override { return choose_device().device == Device::kMetal ? kMetalRank : kCpuRank; }

  std::string explain(const char* bundle_dir) const override {
    const std::string fault = find_fault(Bundle::open(bundle_dir));
    const std::string no_device = choose_device().reason;
    if (fault.empty() || no_device.empty()) return fault + no_device;
    return fault + "; besides, " + no_device;
  }

  LlmBackendSession* open(EliInferenceContext*, const eliza_llm_stream_config_t*, char** out_error) override {
    set_error(out_error, ELIZA_ERR_NOT_IMPLEMENTED, std::string("Cannot open an MLX stream: ") + kNoModels + ".");
    return nullptr;
  }
};

}  // namespace

LlmBackendFactory* factory() {
  static Factory* const instance = new Factory;
  return instance;
}

}  // namespace eliza::mlx
