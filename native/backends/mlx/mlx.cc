#include "native/backends/mlx/mlx.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "native/backends/mlx/config.h"
#include "native/backends/mlx/device.h"
#include "native/backends/mlx/loaded-model.h"
#include "native/backends/mlx/session.h"
#include "native/base/error.h"
#include "native/base/strings.h"
#include "native/bundle/bundle.h"
#include "native/text/hf-tokenizer.h"

namespace eliza::mlx {

namespace {

constexpr int kMetalRank = 50;
constexpr int kCpuRank = -1;  // never in place of a GGUF

// What is wrong with the bundle's MLX model; empty where there is a good one.
std::string find_fault(const Bundle& bundle) {
  const std::optional<Artifact> model = bundle.text_artifact(RuntimeClass::kMlx);
  if (model) {
    try {
      require_known_model(Config::read(model->path));
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }
  const std::vector<std::string> coreml = bundle.coreml_packages();
  if (!coreml.empty()) return coreml.front() + " is a CoreML package, and no CoreML runtime is in this build";
  return "the bundle holds no MLX model: no directory in text/, nor text/ itself, has a config.json and *.safetensors";
}

Artifact text_artifact(const std::string& bundle_dir) {
  const Bundle bundle = Bundle::open(bundle_dir);
  const std::optional<Artifact> artifact = bundle.text_artifact(RuntimeClass::kMlx);
  if (!artifact) throw Error(ELIZA_ERR_BUNDLE_INVALID, find_fault(bundle));
  return *artifact;
}

class Factory final : public LlmBackendFactory {
 public:
  const char* name() const override { return "mlx-coreml"; }

  bool available() const override { return choose_device().device.has_value(); }

  // An ambiguous or broken bundle throws, and the selector shows the message.
  bool can_serve(const char* bundle_dir) const override { return find_fault(Bundle::open(bundle_dir)).empty(); }

  int preference_rank() const override { return choose_device().device == Device::kMetal ? kMetalRank : kCpuRank; }

  bool can_honour(const eliza_llm_stream_config_t* config, std::string* why) const override {
    if (is_set(config->gbnf_grammar)) {
      *why = "MLX streams have no gbnf_grammar; leave it out, or use llama.cpp with a text/*.gguf";
    } else if (config->draft_max > 0 && is_set(config->mtp_drafter_path)) {
      *why = "MLX streams have no drafter; leave out mtp_drafter_path, or use llama.cpp with a text/*.gguf";
    }
    return why->empty();
  }

  std::string explain(const char* bundle_dir) const override {
    const std::string fault = find_fault(Bundle::open(bundle_dir));
    const std::string no_device = choose_device().reason;
    if (fault.empty() || no_device.empty()) return fault + no_device;
    return fault + "; besides, " + no_device;
  }

  std::shared_ptr<const Tokenizer> tokenizer(const char* bundle_dir) const override {
    return HfTokenizer::load(text_artifact(bundle_dir).path);
  }

  LlmBackendSession* open(EliInferenceContext* context, const eliza_llm_stream_config_t* config, char**) override {
    const char* const bundle_dir = llm_backend_context_bundle_dir(context);
    if (bundle_dir == nullptr) throw Error(ELIZA_ERR_INVALID_ARG, "the context is closed; open another one");
    const Artifact artifact = text_artifact(bundle_dir);
    const ContextWish context_size = context_wish(*config, artifact.context_size);
    std::shared_ptr<const LoadedModel> model = acquire_model(artifact.path, context_size);
    const std::shared_ptr<const HfTokenizer> tokenizer = model->tokenizer();
    return new Session(std::move(model), *config, context_size,
                       [tokenizer](int32_t token) { return std::string(tokenizer->piece(token)); });
  }
};

}  // namespace

LlmBackendFactory* factory() {
  static Factory* const instance = new Factory;
  return instance;
}

}  // namespace eliza::mlx
