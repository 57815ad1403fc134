// One generation of llama.cpp, as the seam wants it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "native/backends/llama_cpp/context.h"
#include "native/backends/llama_cpp/drafter.h"
#include "native/backends/llama_cpp/sampler.h"
#include "native/backends/llama_cpp/stop-flag.h"
#include "native/backends/llama_cpp/verifier-hook.h"
#include "native/backends/llama_cpp/warm-cache.h"
#include "native/seam/llm-backend.h"
#include "native/text/token-stream.h"

namespace eliza::llama_cpp {

// What a session takes from, and leaves to, the context of the C ABI that it is opened on.
struct SessionServices {
  std::shared_ptr<const Model> drafter;    // of acquire_drafter
  std::shared_ptr<WarmCache> warm_cache;   // null: prompt_cache_key is ignored
  std::shared_ptr<VerifierHook> verifier;  // null: nobody listens
};

// The drafter that a config asks for, null for none, for `model`. Its path may be relative to `bundle_dir`. Throws as
// acquire_model.
std::shared_ptr<const Model> acquire_drafter(const eliza_llm_stream_config_t& config, const std::string& bundle_dir,
                                             const Model& model, const StopFlag* stop);

class Session final : public LlmBackendSession, private TokenSource {
 public:
  // `manifest_context_size`: the manifest's ctx, 0 where it has none. Throws Error.
  Session(std::shared_ptr<const Model> model, const eliza_llm_stream_config_t& config, int32_t manifest_context_size,
          SessionServices services = {});
  ~Session() override;

  int prefill(const int32_t* token_ids, size_t num_tokens, char** out_error) override;
  int next(int32_t* tokens_out, size_t tokens_cap, size_t* num_tokens_out, char* text_out, size_t text_cap,
           int32_t* drafter_drafted_out, int32_t* drafter_accepted_out, char** out_error) override;
  int cancel() override;
  int reset() override;
  int reset_keep(int32_t n_keep) override;
  int save_slot(const char* filename, char** out_error) override;
  int restore_slot(const char* filename, char** out_error) override;
  int set_seed(uint64_t seed) override;
  LlmSessionStats stats() const override;
  bool has_concurrent_stats() const override { return true; }

 private:
  // What one thread counts and others read, each number for itself: since the last reset.
  struct Counters {
    std::atomic<int64_t> prompt_tokens{0};
    std::atomic<int64_t> reused_tokens{0};
    std::atomic<int64_t> generated_tokens{0};
    std::atomic<int64_t> drafted_tokens{0};
    std::atomic<int64_t> accepted_tokens{0};
    std::atomic<double> prefill_ms{0};
    std::atomic<double> decode_ms{0};
    std::atomic<StopReason> stop_reason{StopReason::kNone};
    void clear();
  };
  class Showing;

  Step step(size_t limit, std::vector<DecodedToken>* out) override;
  Step plain_step(std::vector<DecodedToken>* out);
  Step speculative_step(size_t limit, std::vector<DecodedToken>* out);
  bool deliver(llama_token token, Step* step, std::vector<DecodedToken>* out);
  void open_context(const Context::Options& options);
  size_t undelivered() const;
  void drop_undelivered();
  void restart(size_t n_keep);

  std::shared_ptr<const Model> model_;
  int32_t max_tokens_;
  SessionServices services_;
  std::optional<WarmCache::Key> warm_key_;
  std::vector<std::string> ignored_options_;
  std::unique_ptr<Context> context_;
  bool warm_ = false;  // the context holds what an earlier session left: a prompt may share a prefix with it
  size_t draft_min_ = 0;
  size_t draft_max_ = 0;
  std::unique_ptr<Drafter> drafter_;  // null: none. Goes before the context it drafts for.
  std::vector<llama_token> drafts_;   // of one step; kept for its memory
  int64_t generation_ = 0;            // tokens of this generation that were decoded
  bool overflowed_ = false;           // the last of them found no room in the context
  Sampler sampler_;
  TokenStream stream_{this};
  Counters counters_;
};

}  // namespace eliza::llama_cpp
