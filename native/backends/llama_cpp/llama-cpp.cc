#include "native/backends/llama_cpp/llama-cpp.h"

#include "native/backends/llama_cpp/session.h"
#include "native/backends/llama_cpp/tokenizer.h"
#include "native/base/error.h"
#include "native/bundle/bundle.h"
#include "third_party/llama_cpp/cpu-features.h"

namespace eliza::llama_cpp {
namespace {

Artifact text_artifact(const std::string& bundle_dir) {
  const std::optional<Artifact> artifact = Bundle::open(bundle_dir).text_artifact(RuntimeClass::kLlamaCpp);
  if (!artifact) {
    throw Error(ELIZA_ERR_BUNDLE_INVALID, "the bundle " + bundle_dir +
                                              " has no model for llama.cpp; put one GGUF file into its folder text/");
  }
  return *artifact;
}

}  // namespace

void check_host_cpu() {
  const std::string missing = missing_cpu_features();
  if (missing.empty()) return;
  throw Error(ELIZA_ERR_NOT_IMPLEMENTED, "this CPU has no " + missing +
                                             ", which this build of the library needs; take one that was built with "
                                             "--//platforms:cpu_level=baseline");
}

std::unique_ptr<LlmBackendSession> open(const std::string& bundle_dir, const eliza_llm_stream_config_t& config) {
  check_host_cpu();
  const Artifact artifact = text_artifact(bundle_dir);
  return std::make_unique<Session>(acquire_model(artifact.path, /*n_gpu_layers=*/0), config, artifact.context_size);
}

std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& bundle_dir) {
  check_host_cpu();
  return std::make_shared<GgufTokenizer>(acquire_vocabulary(text_artifact(bundle_dir).path));
}

}  // namespace eliza::llama_cpp
