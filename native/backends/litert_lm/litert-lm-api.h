// The C API of LiteRT-LM as far as this backend calls it: our own prototypes, and a table of pointers to fill from a
// library that is opened at run time. Nothing of LiteRT-LM is needed to build.
//
// The signatures are those of 0.16 to 0.18. 0.19 keeps the names and changes nearly all of them, so a table may be
// filled from a library only after its version has been looked at (library.h).
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {
struct LiteRtLmEngineSettings;
struct LiteRtLmEngine;
struct LiteRtLmSession;
struct LiteRtLmSessionConfig;
struct LiteRtLmSamplerParams;
struct LiteRtLmInputData;
struct LiteRtLmStreamChunk;
struct LiteRtLmTokenizeResult;
struct LiteRtLmDetokenizeResult;
struct LiteRtLmTokenUnion;
struct LiteRtLmTokenUnions;
struct LiteRtLmLoadedFile;

// On a thread of the runtime; `chunk` lives during the call.
using LiteRtLmStreamCallback = void (*)(void* user_data, const LiteRtLmStreamChunk* chunk);
}

namespace eliza::litert_lm {

// X(result, name without "litert_lm_", arguments). A null pointer, or a result that is not 0, is a failure; its message
// is get_last_error_message's, on the same thread. Strings and arrays belong to what they were asked of.
#define ELIZA_LITERT_LM_REQUIRED(X)                                                                     \
  X(const char*, get_last_error_message, ())                                                            \
  X(void, set_min_log_level, (int level))                                                               \
  X(LiteRtLmEngineSettings*, engine_settings_create,                                                    \
    (const char* path, const char* backend, const char* vision_backend, const char* audio_backend))     \
  X(void, engine_settings_delete, (LiteRtLmEngineSettings*))                                            \
  X(void, engine_settings_set_max_num_tokens, (LiteRtLmEngineSettings*, int tokens))                    \
  X(void, engine_settings_set_cache_dir, (LiteRtLmEngineSettings*, const char* directory))              \
  X(LiteRtLmEngine*, engine_create, (const LiteRtLmEngineSettings*))                                    \
  X(void, engine_delete, (LiteRtLmEngine*))                                                             \
  X(LiteRtLmSession*, engine_create_session, (LiteRtLmEngine*, LiteRtLmSessionConfig*))                 \
  X(LiteRtLmTokenizeResult*, engine_tokenize, (LiteRtLmEngine*, const char* text))                      \
  X(const int*, tokenize_result_get_tokens, (LiteRtLmTokenizeResult*))                                  \
  X(size_t, tokenize_result_get_num_tokens, (LiteRtLmTokenizeResult*))                                  \
  X(void, tokenize_result_delete, (LiteRtLmTokenizeResult*))                                            \
  X(LiteRtLmDetokenizeResult*, engine_detokenize, (LiteRtLmEngine*, const int* tokens, size_t count))   \
  X(const char*, detokenize_result_get_string, (LiteRtLmDetokenizeResult*))                             \
  X(void, detokenize_result_delete, (LiteRtLmDetokenizeResult*))                                        \
  X(LiteRtLmTokenUnion*, engine_get_start_token, (LiteRtLmEngine*))                                     \
  X(int, token_union_get_type, (LiteRtLmTokenUnion*)) /* kUnionOf… */                                   \
  X(const char*, token_union_get_string, (LiteRtLmTokenUnion*))                                         \
  X(int, token_union_get_ids, (LiteRtLmTokenUnion*, const int** ids, size_t* count))                    \
  X(void, token_union_delete, (LiteRtLmTokenUnion*))                                                    \
  X(LiteRtLmSamplerParams*, sampler_params_create, (int type)) /* kTopP */                              \
  X(void, sampler_params_delete, (LiteRtLmSamplerParams*))                                              \
  X(void, sampler_params_set_top_k, (LiteRtLmSamplerParams*, int32_t))                                  \
  X(void, sampler_params_set_top_p, (LiteRtLmSamplerParams*, float))                                    \
  X(void, sampler_params_set_temperature, (LiteRtLmSamplerParams*, float))                              \
  X(void, sampler_params_set_seed, (LiteRtLmSamplerParams*, int32_t))                                   \
  X(LiteRtLmSessionConfig*, session_config_create, ())                                                  \
  X(void, session_config_delete, (LiteRtLmSessionConfig*))                                              \
  X(void, session_config_set_sampler_params, (LiteRtLmSessionConfig*, const LiteRtLmSamplerParams*))    \
  X(void, session_config_set_max_output_tokens, (LiteRtLmSessionConfig*, int))                          \
  X(void, session_config_set_apply_prompt_template, (LiteRtLmSessionConfig*, bool))                     \
  X(LiteRtLmInputData*, input_data_create, (int type, const void* data, size_t size)) /* kText */       \
  X(void, input_data_delete, (LiteRtLmInputData*))                                                      \
  X(int, session_run_prefill, (LiteRtLmSession*, const LiteRtLmInputData* const* inputs, size_t count)) \
  X(int, session_run_decode_async, (LiteRtLmSession*, LiteRtLmStreamCallback, void* user_data))         \
  X(void, session_cancel_process, (LiteRtLmSession*))                                                   \
  X(int, session_rewind_to_step, (LiteRtLmSession*, int step))                                          \
  X(void, session_delete, (LiteRtLmSession*)) /* waits for a decode that runs */                        \
  X(const char*, stream_chunk_get_text, (const LiteRtLmStreamChunk*))                                   \
  X(bool, stream_chunk_is_final, (const LiteRtLmStreamChunk*))                                          \
  X(const char*, stream_chunk_get_error, (const LiteRtLmStreamChunk*))

// What 0.16 may lack; null where it does.
#define ELIZA_LITERT_LM_OPTIONAL(X)                                                                      \
  X(void, engine_settings_set_num_threads, (LiteRtLmEngineSettings*, int threads))                       \
  X(void, engine_settings_set_litert_dispatch_lib_dir, (LiteRtLmEngineSettings*, const char* directory)) \
  X(LiteRtLmLoadedFile*, loaded_file_create, (const char* path))                                         \
  X(void, loaded_file_delete, (LiteRtLmLoadedFile*))                                                     \
  X(uint32_t, loaded_file_max_context_tokens, (LiteRtLmLoadedFile*))                                     \
  X(bool, loaded_file_is_dynamic_context, (LiteRtLmLoadedFile*))                                         \
  X(const char*, loaded_file_modality_soc_name, (LiteRtLmLoadedFile*, int modality)) /* 0: text */

// Values of its enumerations.
inline constexpr int kTopP = 2;  // a sampler; the others are not there on the CPU
inline constexpr int kText = 0;  // a kind of input, and a modality
inline constexpr int kUnionOfText = 0;
inline constexpr int kSilent = 1000;  // a log level

struct Api {
#define ELIZA_LITERT_LM_POINTER(result, name, arguments) result(*name) arguments = nullptr;
  ELIZA_LITERT_LM_REQUIRED(ELIZA_LITERT_LM_POINTER)
  ELIZA_LITERT_LM_OPTIONAL(ELIZA_LITERT_LM_POINTER)
#undef ELIZA_LITERT_LM_POINTER
};

}  // namespace eliza::litert_lm
