// The pull side of a generation, the same for every backend: turns a source of decoded tokens into what
// eliza_inference_llm_stream_next promises about counts, caps, whole characters and the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "native/text/utf8-gate.h"

namespace eliza {

enum class StopReason { kNone, kEndOfGeneration, kMaxTokens, kContextFull };

// "", "end_of_generation", "max_tokens", "context_full".
const char* stop_reason_name(StopReason reason);

// A token as the runtime decoded it; `text` holds its bytes, perhaps a part of a character.
struct DecodedToken {
  int32_t id;
  std::string text;
};

// What a backend implements: one decode step.
class TokenSource {
 public:
  virtual ~TokenSource() = default;

  struct Step {
    StopReason stop = StopReason::kNone;  // another: no further step; tokens of this one count
    int32_t drafted = 0;                  // speculative tokens of this step
    int32_t accepted = 0;
  };

  // Appends at most `limit` >= 1 tokens to *out (0 is fine for a runtime that has none ready yet). An
  // end-of-generation token is not appended. Throws Error, also ELIZA_ERR_CANCELLED.
  virtual Step step(size_t limit, std::vector<DecodedToken>* out) = 0;
};

// One generation at a time: begin, then next until it returns 1. Not thread-safe.
//
// next makes at most one decode step, and none while tokens wait: a caller sees each token as soon as it exists,
// however large its buffers are. What a step decoded is delivered in order, each token together with the text it
// completes, as far as the caller's buffers go:
//
//   idle --begin--> generating --the source stops, or max_tokens--> ending --tail delivered--> ended (1, from now on)
//
// A generation ends once every token has been delivered and the tail, U+FFFD for a character the last token left
// unfinished, fits behind their text; where it does not fit, next returns 0 once more and delivers it alone.
// Everything is worked out on copies and committed last, so that an error, whatever it is, loses nothing.
class TokenStream {
 public:
  explicit TokenStream(TokenSource* source) : source_(source) {}

  // Arms a generation of at most `max_tokens` (0: no bound). Drops what a former generation left waiting.
  void begin(int32_t max_tokens);

  // Back to before any begin: next is an error again.
  void reset();

  // The contract of eliza_inference_llm_stream_next; throws Error, and whatever the source throws. `drafted` and
  // `accepted` may be null. Once tokens are taken from the source they are never lost: an error leaves them waiting.
  // Waiting tokens are delivered without a step, so a backend checks its cancel flag before it calls.
  int next(int32_t* tokens_out, size_t tokens_cap, size_t* num_tokens_out, char* text_out, size_t text_cap,
           int32_t* drafted, int32_t* accepted);

  StopReason stop_reason() const { return stop_reason_; }  // kNone until next has returned 1
  int64_t generated() const { return generated_; }         // tokens returned in this generation
  size_t waiting() const { return waiting_.size(); }       // tokens decoded, but not delivered: begin drops them

 private:
  enum class State { kIdle, kGenerating, kEnded };

  size_t tokens_left() const;  // until max_tokens

  TokenSource* source_;
  State state_ = State::kIdle;
  int64_t max_tokens_ = 0;
  int64_t generated_ = 0;
  StopReason source_stop_ = StopReason::kNone;  // why the source has no further step
  StopReason stop_reason_ = StopReason::kNone;
  std::vector<DecodedToken> waiting_;  // decoded, not delivered; the source appends to it
  Utf8Gate gate_;                      // after the text of the delivered tokens
  int32_t drafted_ = 0;                // not yet reported
  int32_t accepted_ = 0;
  std::string text_;  // of one call; kept for its capacity
};

}  // namespace eliza
