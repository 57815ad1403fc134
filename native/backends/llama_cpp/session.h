// One generation of llama.cpp, as the seam wants it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "native/backends/llama_cpp/context.h"
#include "native/backends/llama_cpp/sampler.h"
#include "native/seam/llm-backend.h"
#include "native/text/token-stream.h"

namespace eliza::llama_cpp {

class Session final : public LlmBackendSession, private TokenSource {
 public:
  // `manifest_context_size`: the manifest's ctx, 0 where it has none. Throws Error.
  Session(std::shared_ptr<const Model> model, const eliza_llm_stream_config_t& config, int32_t manifest_context_size);

  int prefill(const int32_t* token_ids, size_t num_tokens, char** out_error) override;
  int next(int32_t* tokens_out, size_t tokens_cap, size_t* num_tokens_out, char* text_out, size_t text_cap,
           int32_t* drafter_drafted_out, int32_t* drafter_accepted_out, char** out_error) override;
  int cancel() override;
  int reset() override;
  int reset_keep(int32_t n_keep) override;
  int set_seed(uint64_t seed) override;
  LlmSessionStats stats() const override;

 private:
  Step step(size_t limit, std::vector<DecodedToken>* out) override;
  void drop_undelivered();
  void restart(size_t n_keep);

  std::shared_ptr<const Model> model_;
  int32_t max_tokens_;
  std::vector<std::string> ignored_options_;
  std::unique_ptr<Context> context_;
  Sampler sampler_;
  TokenStream stream_{this};
  LlmSessionStats counters_;  // tokens and times since the last reset; stats() adds the rest
};

}  // namespace eliza::llama_cpp
