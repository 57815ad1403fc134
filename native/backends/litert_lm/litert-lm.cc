#include "native/backends/litert_lm/litert-lm.h"

#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "native/base/error.h"
#include "native/bundle/bundle.h"

namespace eliza::litert_lm {

namespace {

constexpr char kNoRuntime[] =
    "this version of the library recognises .litertlm models but has no LiteRT-LM runtime to run them; use llama.cpp "
    "with a text/*.gguf";

// What is wrong with the bundle's LiteRT-LM model; empty where there is a good one.
std::string find_fault(const char* bundle_dir) {
  const std::optional<Artifact> model = Bundle::open(bundle_dir).text_artifact(RuntimeClass::kLitertLm);
  if (!model) return "the bundle holds no text/*.litertlm";

  constexpr std::string_view kMagic = "LITERTLM";
  char head[kMagic.size()] = {};
  std::ifstream file(model->path, std::ios::binary);
  if (!file) return "cannot read " + model->path;
  file.read(head, sizeof head);
  if (std::string_view(head, sizeof head) != kMagic) {
    return model->path + " is not a LiteRT-LM model: it does not begin with " + std::string(kMagic);
  }
  return {};
}

class Factory final : public LlmBackendFactory {
 public:
  const char* name() const override { return "litert-lm"; }

  bool available() const override { return false; }

  // An ambiguous or broken bundle throws, and the selector shows the message.
  bool can_serve(const char* bundle_dir) const override { return find_fault(bundle_dir).empty(); }

  std::string explain(const char* bundle_dir) const override {
    const std::string fault = find_fault(bundle_dir);
    return fault.empty() ? kNoRuntime : fault + "; besides, " + kNoRuntime;
  }

  LlmBackendSession* open(EliInferenceContext*, const eliza_llm_stream_config_t*, char** out_error) override {
    set_error(out_error, ELIZA_ERR_NOT_IMPLEMENTED, std::string("Cannot open a litert-lm stream: ") + kNoRuntime + ".");
    return nullptr;
  }
};

}  // namespace

LlmBackendFactory* factory() {
  static Factory* const instance = new Factory;
  return instance;
}

}  // namespace eliza::litert_lm
