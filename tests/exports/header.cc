// The header as C++17: whatever a client does with it compiles without a warning.
#include <type_traits>

#include "native/include/eliza-inference-ffi.h"

#if ELIZA_INFERENCE_ABI_VERSION >= 15
static_assert(sizeof(eliza_llm_stream_config_t) == 88);
#else
static_assert(sizeof(eliza_llm_stream_config_t) == 80);
#endif

// C linkage: a declaration of its own would not match otherwise.
extern "C" const char* eliza_inference_abi_version(void);

static_assert(std::is_same_v<decltype(&eliza_inference_llm_stream_cancel), int (*)(EliLlmStream*)>);

eliza_llm_stream_config_t default_config();

eliza_llm_stream_config_t default_config() {
  const eliza_llm_stream_config_t config = ELIZA_LLM_STREAM_CONFIG_DEFAULT;
  return config;
}
