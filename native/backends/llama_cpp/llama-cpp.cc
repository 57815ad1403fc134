#include "native/backends/llama_cpp/llama-cpp.h"

#include <mutex>
#include <utility>

#include "native/backends/llama_cpp/embedder.h"
#include "native/backends/llama_cpp/gpu.h"
#include "native/backends/llama_cpp/session.h"
#include "native/backends/llama_cpp/stop-flag.h"
#include "native/backends/llama_cpp/tokenizer.h"
#include "native/backends/llama_cpp/turn-scorer.h"
#include "native/backends/llama_cpp/verifier-hook.h"
#include "native/backends/llama_cpp/warm-cache.h"
#include "native/base/error.h"
#include "native/bundle/bundle.h"
#include "third_party/llama_cpp/cpu-features.h"

namespace eliza::llama_cpp {
namespace {

constexpr int32_t kNoGpuLayers = 0;

// 0 where there is no GPU, so that all who ask in vain share one copy of the weights. Nobody else wakes one.
int32_t usable_gpu_layers(int32_t asked) { return asked == 0 || gpus().devices.empty() ? kNoGpuLayers : asked; }

Artifact text_artifact(const std::string& bundle_dir) {
  const std::optional<Artifact> artifact = Bundle::open(bundle_dir).text_artifact(RuntimeClass::kLlamaCpp);
  if (!artifact) {
    throw Error(ELIZA_ERR_BUNDLE_INVALID,
                "the bundle " + bundle_dir + " has no model for llama.cpp; put one GGUF file into its folder text/");
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

GpuFacts gpu_facts() {
  const std::string missing = missing_cpu_features();
  if (!missing.empty()) return {{}, "this CPU has no " + missing + ", which this build of the library needs"};
  GpuFacts facts;
  for (const ggml_backend_dev_t device : gpus().devices) facts.devices.push_back(device_name(device));
  facts.reason = gpus().reason;
  return facts;
}

std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& bundle_dir) {
  check_host_cpu();
  return std::make_shared<GgufTokenizer>(acquire_vocabulary(text_artifact(bundle_dir).path));
}

struct Engine::Parts {
  const std::shared_ptr<WarmCache> warm_cache = std::make_shared<WarmCache>();
  const std::shared_ptr<VerifierHook> verifier = std::make_shared<VerifierHook>();
  StopFlag stop{false};
  std::mutex mutex;
  std::unique_ptr<Embedder> embedder;
  std::unique_ptr<TurnScorer> scorer;

  // `*part`, made on the bundle's model when it is first needed.
  template <typename Part>
  Part& make(std::unique_ptr<Part>* part, const std::string& bundle_dir) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (*part == nullptr) {
      check_host_cpu();
      *part = std::make_unique<Part>(acquire_model(text_artifact(bundle_dir).path, kNoGpuLayers, &stop), stop);
    }
    return **part;
  }
};

Engine::Engine(std::string bundle_dir) : bundle_dir_(std::move(bundle_dir)), parts_(std::make_unique<Parts>()) {}

Engine::~Engine() = default;

std::unique_ptr<LlmBackendSession> Engine::open(const eliza_llm_stream_config_t& config) {
  check_host_cpu();
  const Artifact artifact = text_artifact(bundle_dir_);
  std::shared_ptr<const Model> model =
      acquire_model(artifact.path, usable_gpu_layers(config.n_gpu_layers), &parts_->stop);
  std::shared_ptr<const Model> drafter = acquire_drafter(config, bundle_dir_, *model, &parts_->stop);
  throw_if_stopped(&parts_->stop);
  return std::make_unique<Session>(std::move(model), config, artifact.context_size,
                                   SessionServices{std::move(drafter), parts_->warm_cache, parts_->verifier});
}

void Engine::stop() noexcept {
  parts_->stop.store(true, std::memory_order_relaxed);
  wake_waiting_loads();
}

void Engine::set_verifier_callback(eliza_verifier_callback_t callback, void* user_data) {
  parts_->verifier->set(callback, user_data);
}

std::vector<float> Engine::embed(std::string_view text, int pooling) {
  return parts_->make(&parts_->embedder, bundle_dir_).embed(text, pooling);
}

TurnScore Engine::eot_score(const int32_t* tokens, size_t num_tokens, int32_t target) {
  return parts_->make(&parts_->scorer, bundle_dir_).score(tokens, num_tokens, target);
}

}  // namespace eliza::llama_cpp
