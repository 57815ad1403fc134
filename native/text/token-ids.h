// Token ids from outside, before a model or a vocabulary is asked about them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace eliza {

// Throws Error(ELIZA_ERR_INVALID_ARG): `token`, at `index` of those that were passed, is no id of a vocabulary whose
// ids are below `vocab_size`.
[[noreturn]] void fail_unknown_token(int32_t token, size_t index, int32_t vocab_size);

// The same for the first of `tokens` that is not from 0 to `vocab_size` - 1.
void check_token_ids(const int32_t* tokens, size_t num_tokens, int32_t vocab_size);

}  // namespace eliza
