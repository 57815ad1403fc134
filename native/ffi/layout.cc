// The structs of the C ABI, pinned: clients marshal them by these offsets (docs/abi.md), not through the header.
#include <cstddef>
#include <type_traits>

#include "native/include/eliza-inference-ffi.h"

namespace {

#define ELIZA_FIELD(type, field, offset, field_type)                            \
  static_assert(offsetof(type, field) == (offset), #type "::" #field " moved"); \
  static_assert(std::is_same_v<decltype(type::field), field_type>, #type "::" #field " changed its type")

ELIZA_FIELD(eliza_llm_stream_config_t, max_tokens, 0, int32_t);
ELIZA_FIELD(eliza_llm_stream_config_t, temperature, 4, float);
ELIZA_FIELD(eliza_llm_stream_config_t, top_p, 8, float);
ELIZA_FIELD(eliza_llm_stream_config_t, top_k, 12, int32_t);
ELIZA_FIELD(eliza_llm_stream_config_t, repeat_penalty, 16, float);
ELIZA_FIELD(eliza_llm_stream_config_t, slot_id, 20, int32_t);
ELIZA_FIELD(eliza_llm_stream_config_t, prompt_cache_key, 24, const char*);
ELIZA_FIELD(eliza_llm_stream_config_t, draft_min, 32, int32_t);
ELIZA_FIELD(eliza_llm_stream_config_t, draft_max, 36, int32_t);
ELIZA_FIELD(eliza_llm_stream_config_t, mtp_drafter_path, 40, const char*);
ELIZA_FIELD(eliza_llm_stream_config_t, gbnf_grammar, 48, const char*);
ELIZA_FIELD(eliza_llm_stream_config_t, disable_thinking, 56, int32_t);
ELIZA_FIELD(eliza_llm_stream_config_t, n_gpu_layers, 60, int32_t);
ELIZA_FIELD(eliza_llm_stream_config_t, cache_type_k, 64, const char*);
ELIZA_FIELD(eliza_llm_stream_config_t, cache_type_v, 72, const char*);
#if ELIZA_INFERENCE_ABI_VERSION >= 15
ELIZA_FIELD(eliza_llm_stream_config_t, context_size, 80, int32_t);
static_assert(sizeof(eliza_llm_stream_config_t) == 88);
#else
static_assert(sizeof(eliza_llm_stream_config_t) == 80);
#endif
static_assert(alignof(eliza_llm_stream_config_t) == 8);
static_assert(std::is_trivial_v<eliza_llm_stream_config_t> && std::is_standard_layout_v<eliza_llm_stream_config_t>);

ELIZA_FIELD(EliVerifierEvent, accepted_token_ids, 0, const int*);
ELIZA_FIELD(EliVerifierEvent, n_accepted, 8, size_t);
ELIZA_FIELD(EliVerifierEvent, rejected_from, 16, int);
ELIZA_FIELD(EliVerifierEvent, rejected_to, 20, int);
ELIZA_FIELD(EliVerifierEvent, corrected_token_ids, 24, const int*);
ELIZA_FIELD(EliVerifierEvent, n_corrected, 32, size_t);
static_assert(sizeof(EliVerifierEvent) == 40 && alignof(EliVerifierEvent) == 8);

// Token arrays are int* in some functions and int32_t* in others.
static_assert(std::is_same_v<int, int32_t>);

}  // namespace
