// One generation of MLX, as the seam wants it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "native/backends/mlx/decoder.h"
#include "native/backends/mlx/loaded-model.h"
#include "native/seam/llm-backend.h"
#include "native/text/token-stream.h"

namespace eliza::mlx {

// How many tokens of context a stream asks for; `manifest_size`: the manifest's ctx, 0 where it has none.
ContextWish context_wish(const eliza_llm_stream_config_t& config, int32_t manifest_size);

class Session final : public LlmBackendSession, private TokenSource {
 public:
  // The bytes of a generated token, perhaps a part of a character.
  using Pieces = std::function<std::string(int32_t)>;

  // Throws Error.
  Session(std::shared_ptr<const LoadedModel> model, const eliza_llm_stream_config_t& config, const ContextWish& context,
          Pieces pieces);
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

 private:
  Step step(size_t limit, std::vector<DecodedToken>* out) override;
  void feed(bool last);
  void drop_undelivered();
  void keep_first(size_t count);
  void restart(size_t n_keep);
  void throw_if_cancelled() const;
  template <typename Body>
  auto compute(Body&& body);

  std::shared_ptr<const LoadedModel> model_;
  Pieces pieces_;
  int32_t max_tokens_;
  size_t capacity_;
  std::vector<std::string> ignored_options_;
  std::atomic<bool> cancelled_{false};
  std::unique_ptr<Decoder> decoder_;
  std::vector<int32_t> tokens_;  // the context; the decoder has the first of them, all but at most the last
  int64_t generation_ = 0;       // tokens of this generation that were chosen
  TokenStream stream_{this};
  LlmSessionStats counters_;  // tokens and times since the last reset; stats() adds the rest
};

}  // namespace eliza::mlx
