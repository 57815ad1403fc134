#include "native/text/token-ids.h"

#include <string>

#include "native/base/error.h"

namespace eliza {

void fail_unknown_token(int32_t token, size_t index, int32_t vocab_size) {
  throw Error(ELIZA_ERR_INVALID_ARG, "token " + std::to_string(token) + " at index " + std::to_string(index) +
                                         " is not in the model's vocabulary, which has ids from 0 to " +
                                         std::to_string(vocab_size - 1) + "; tokenize with the same bundle");
}

void check_token_ids(const int32_t* tokens, size_t num_tokens, int32_t vocab_size) {
  for (size_t i = 0; i < num_tokens; ++i) {
    if (tokens[i] < 0 || tokens[i] >= vocab_size) fail_unknown_token(tokens[i], i, vocab_size);
  }
}

}  // namespace eliza
