// How many tokens of context were asked for, by whom: the same order for every backend.
#pragma once

#include <cstdint>

#include "native/include/eliza-inference-ffi.h"

namespace eliza {

// The config's context_size; 0 where clients of this ABI have no such field.
int32_t context_size_of(const eliza_llm_stream_config_t& config);

struct RequestedContext {
  int32_t tokens = 0;       // 0: nobody asked
  const char* source = "";  // who did, for messages: "context_size"
};

// The config's number of tokens, else the manifest's, else ELIZA_CONTEXT_SIZE (each 0 for none). Throws
// Error(ELIZA_ERR_INVALID_ARG) where the variable is no number of tokens, also where another goes first.
RequestedContext requested_context(int32_t config_size, int32_t manifest_size);

}  // namespace eliza
