/* The header as C99: whatever a client does with it compiles without a warning. */
#include "native/include/eliza-inference-ffi.h"

/* C99 has no static_assert: an array of negative size is an error. */
#define CHECK(name, condition) typedef char check_##name[(condition) ? 1 : -1]

#if ELIZA_INFERENCE_ABI_VERSION >= 15
CHECK(config_size, sizeof(eliza_llm_stream_config_t) == 88);
CHECK(context_size, offsetof(eliza_llm_stream_config_t, context_size) == 80);
#else
CHECK(config_size, sizeof(eliza_llm_stream_config_t) == 80);
#endif
CHECK(cache_type_v, offsetof(eliza_llm_stream_config_t, cache_type_v) == 72);
CHECK(event_size, sizeof(EliVerifierEvent) == 40);
CHECK(ok, ELIZA_OK == 0);
CHECK(not_implemented, ELIZA_ERR_NOT_IMPLEMENTED == -1);
CHECK(invalid_arg, ELIZA_ERR_INVALID_ARG == -2);
CHECK(bundle_invalid, ELIZA_ERR_BUNDLE_INVALID == -3);
CHECK(ffi_fault, ELIZA_ERR_FFI_FAULT == -4);
CHECK(oom, ELIZA_ERR_OOM == -5);
CHECK(abi_mismatch, ELIZA_ERR_ABI_MISMATCH == -6);
CHECK(cancelled, ELIZA_ERR_CANCELLED == -7);

int stream_a_token(EliInferenceContext* context, int32_t* token);

int stream_a_token(EliInferenceContext* context, int32_t* token) {
  eliza_llm_stream_config_t config = ELIZA_LLM_STREAM_CONFIG_DEFAULT;
  EliLlmStream* stream = eliza_inference_llm_stream_open(context, &config, NULL);
  char text[16];
  size_t count = 0;
  const int status = eliza_inference_llm_stream_next(stream, token, 1, &count, text, sizeof text, NULL, NULL, NULL);
  eliza_inference_llm_stream_close(stream);
  return status;
}
