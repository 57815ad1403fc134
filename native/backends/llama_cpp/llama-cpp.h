// The in-tree path: llama.cpp behind LlmBackendSession. The implicit fallback of the selector, so it has no factory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "native/backends/llama_cpp/turn-score.h"
#include "native/include/eliza-inference-ffi.h"
#include "native/seam/gpu-facts.h"
#include "native/seam/llm-backend.h"
#include "native/text/tokenizer.h"

namespace eliza::llama_cpp {

// Throws Error(ELIZA_ERR_NOT_IMPLEMENTED) where this CPU lacks an instruction set the build needs; names it, and which
// build to take instead.
void check_host_cpu();

// The GPUs that n_gpu_layers can name layers for on this host. Wakes them.
GpuFacts gpu_facts();

// The tokenizer of the bundle's text/*.gguf: the vocabulary of a loaded model, else one loaded without weights.
std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& bundle_dir);

// What a context of the C ABI keeps on llama.cpp: warm KV caches (docs/llama_cpp.md), and what embeds and scores, made
// when first needed. Thread-safe. Functions throw Error.
//
// The weights are shared by everything in the process that has the same file and GPU layers, and freed with the last.
class Engine {
 public:
  explicit Engine(std::string bundle_dir);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // A session on the bundle's text/*.gguf. It may outlive the engine.
  std::unique_ptr<LlmBackendSession> open(const eliza_llm_stream_config_t& config);

  // The contracts of eliza_inference_embed and eliza_inference_llm_eot_score.
  std::vector<float> embed(std::string_view text, int pooling);
  TurnScore eot_score(const int32_t* tokens, size_t num_tokens, int32_t target);

  // From any thread: what loads, embeds or scores ends soon, and what comes later at once, with ELIZA_ERR_CANCELLED.
  // Sessions have a cancel of their own.
  void stop() noexcept;

  // The contract of eliza_inference_set_verifier_callback; null for none.
  void set_verifier_callback(eliza_verifier_callback_t callback, void* user_data);

 private:
  struct Parts;
  const std::string bundle_dir_;
  const std::unique_ptr<Parts> parts_;
};

// The GBNF grammar that accepts what a JSON schema (as JSON text) does. Needs no model. Throws
// Error(ELIZA_ERR_INVALID_ARG) where the text is no JSON, or holds what a grammar cannot express.
std::string json_schema_to_gbnf(const std::string& schema);

}  // namespace eliza::llama_cpp
