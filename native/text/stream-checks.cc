#include "native/text/stream-checks.h"

#include <string>

#include "native/base/error.h"
#include "native/text/token-ids.h"

namespace eliza {

void throw_cancelled() { throw Error(ELIZA_ERR_CANCELLED, "the stream was cancelled; reset it to use it again"); }

void throw_cancelled_step(size_t* num_tokens_out, char* text_out) {
  *num_tokens_out = 0;
  text_out[0] = '\0';
  throw_cancelled();
}

void check_prompt(const int32_t* tokens, size_t num_tokens, int32_t vocab_size) {
  if (tokens == nullptr || num_tokens == 0) {
    throw Error(ELIZA_ERR_INVALID_ARG, "prefill got no tokens: pass at least one");
  }
  check_token_ids(tokens, num_tokens, vocab_size);
}

void check_room(size_t num_tokens, size_t room, size_t capacity) {
  if (num_tokens <= room) return;
  throw Error(ELIZA_ERR_INVALID_ARG, "the prompt has " + std::to_string(num_tokens) + " tokens, but only " +
                                         std::to_string(room) + " of the context's " + std::to_string(capacity) +
                                         " are free; shorten it, reset the stream, or open one with a larger "
                                         "context_size");
}

}  // namespace eliza
