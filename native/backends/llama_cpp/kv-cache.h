// The KV cache before it exists: its types by name, and how many tokens it should have room for.
#pragma once

#include <cstdint>
#include <string>

#include "ggml.h"
#include "native/backends/llama_cpp/model-cache.h"

namespace eliza::llama_cpp {

struct CacheTypes {
  ggml_type k = GGML_TYPE_F16;
  ggml_type v = GGML_TYPE_F16;
};

// The types called `k` and `v` ("f16", "q8_0", …; null or empty: f16). Throws Error(ELIZA_ERR_INVALID_ARG): an unknown
// name with the known ones, or a block size that does not divide the model's head dimension.
CacheTypes cache_types(const Model& model, const char* k, const char* v);

// Bytes of a cache for `n_ctx` tokens, and of the buffers that grow with it. An estimate from above.
uint64_t cache_bytes(const Model& model, uint32_t n_ctx, CacheTypes types);

// How many tokens a session gets: the first that is given of the config's context_size, the manifest's ctx and
// ELIZA_CONTEXT_SIZE (0: not given); else what the model was trained on, as far as half of the free memory goes.
// Throws Error: ELIZA_ERR_OOM with the estimate where what was asked for does not fit into memory.
uint32_t context_size(const Model& model, int32_t config_size, int32_t manifest_size, CacheTypes types);

// Tokens decoded at once in a prefill. The unit of cancelling, and of the work buffers.
inline constexpr uint32_t kPrefillChunk = 512;

}  // namespace eliza::llama_cpp
