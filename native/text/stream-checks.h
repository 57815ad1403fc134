// What a stream says no to, whichever backend it runs on.
#pragma once

#include <cstddef>
#include <cstdint>

namespace eliza {

// Throws Error(ELIZA_ERR_CANCELLED).
[[noreturn]] void throw_cancelled();

// The same out of a `next` that has its step already: a caller that knows cancel has returned must not see a success
// after it.
[[noreturn]] void throw_cancelled_step(size_t* num_tokens_out, char* text_out);

// Throws Error(ELIZA_ERR_INVALID_ARG) where prefill got no tokens, or one that is not below `vocab_size`.
void check_prompt(const int32_t* tokens, size_t num_tokens, int32_t vocab_size);

// Throws the same where a prompt has more tokens than the `room` that is left of the context's `capacity`.
void check_room(size_t num_tokens, size_t room, size_t capacity);

}  // namespace eliza
