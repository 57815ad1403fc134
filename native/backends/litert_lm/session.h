// One stream of LiteRT-LM, as the seam wants it: ids in and out over a runtime that takes and gives text, pulled from a
// runtime that pushes, with a context that the runtime's sessions only lend.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "native/backends/litert_lm/engine.h"
#include "native/backends/litert_lm/runtime-session.h"
#include "native/backends/litert_lm/tokenizer.h"
#include "native/seam/llm-backend.h"
#include "native/text/token-stream.h"

namespace eliza::litert_lm {

class Session final : public LlmBackendSession, private TokenSource {
 public:
  // Throws Error.
  Session(std::shared_ptr<const Engine> engine, const eliza_llm_stream_config_t& config);

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
  StopReason pull();
  void throw_if_cancelled() const;
  void check_room(size_t num_tokens) const;
  size_t start_size(const int32_t* token_ids, size_t num_tokens) const;
  void make_room(size_t num_tokens);
  void ready();
  void feed(const std::vector<Spelling>& spellings, bool first);
  size_t steps(size_t num_tokens) const;
  void restart();

  const std::shared_ptr<const Engine> engine_;
  const int32_t max_tokens_;
  RuntimeSessionOptions options_;
  std::vector<std::string> ignored_options_;
  const std::shared_ptr<std::atomic<bool>> cancelled_ = std::make_shared<std::atomic<bool>>(false);

  // What the caller has put into the context, and has been given; the runtime's may be ahead of it.
  std::vector<int32_t> tokens_;
  size_t added_ = 0;                         // start tokens that the caller left out, and the runtime added
  std::unique_ptr<RuntimeSession> runtime_;  // null: none yet, or it died. Made anew from tokens_.
  size_t limit_step_ = 0;                    // where max_tokens ends the generation
  bool ahead_ = false;                       // the runtime's context goes on behind tokens_
  bool reseeded_ = false;                    // runtime_ has another seed than options_
  std::vector<DecodedToken> decoded_;        // of a chunk, not yet taken by a step
  TokenStream stream_{this};
  LlmSessionStats counters_;  // tokens and times since the last reset; stats() adds the rest
};

}  // namespace eliza::litert_lm
