/* libelizainference: one C ABI that streams tokens from an on-device language model.
 *
 * A context is opened on a bundle: a directory that holds the model files (docs/bundle.md). A stream is one
 * generation on that context. Which runtime answers a stream (llama.cpp, LiteRT-LM, MLX) is decided at each
 * eliza_inference_llm_stream_open, from the bundle, the build, the host and the environment variable
 * ELIZA_LLM_BACKEND; eliza_inference_llm_backend_report tells which one it is, and why. Tokens are pulled:
 * no callback is called between two calls, and nothing runs, but that MLX and LiteRT-LM work some tokens ahead.
 *
 *   char* error = NULL;
 *   EliInferenceContext* context = eliza_inference_create("path/to/bundle", &error);
 *   int* prompt = NULL;
 *   size_t prompt_size = 0;
 *   if (context) eliza_inference_tokenize(context, "Hello", 5, 1, 1, &prompt, &prompt_size, &error);
 *
 *   eliza_llm_stream_config_t config = ELIZA_LLM_STREAM_CONFIG_DEFAULT;
 *   config.max_tokens = 64;
 *   EliLlmStream* stream = prompt ? eliza_inference_llm_stream_open(context, &config, &error) : NULL;
 *   int status = stream ? eliza_inference_llm_stream_prefill(stream, (int32_t*)prompt, prompt_size, &error) : -1;
 *   while (status == 0) {
 *     int32_t tokens[32];
 *     char text[1024];
 *     size_t count;
 *     status = eliza_inference_llm_stream_next(stream, tokens, 32, &count, text, sizeof text, NULL, NULL, &error);
 *     if (status >= 0) fputs(text, stdout), fflush(stdout);
 *   }
 *   if (status < 0) fprintf(stderr, "%s\n", error);
 *
 *   eliza_inference_free_string(error);
 *   eliza_inference_llm_stream_close(stream);
 *   eliza_inference_free_tokens(prompt);
 *   eliza_inference_destroy(context);
 *
 * Rules that hold for every function, unless its own comment says otherwise:
 *
 * Errors.  A function that returns int returns a negative ELIZA_ERR_* on failure; one that returns a pointer
 *   returns NULL. `out_error` may be NULL. Otherwise *out_error is set: to NULL on success, and on failure to a
 *   UTF-8 message that says what was wrong, with which value, and what to do. The caller frees it with
 *   eliza_inference_free_string (or free()). eliza_inference_last_status() has the status of a call that returned
 *   NULL. No exception crosses this boundary, bad input never ends the process.
 * Handles.  Contexts, streams and the other opaque pointers are ids, not addresses. A handle that is NULL, closed,
 *   of another kind or made up is ELIZA_ERR_INVALID_ARG. Closing and destroying accept NULL.
 * Memory.  Input strings and arrays are read during the call only. Output strings and arrays come from malloc.
 * Threads.  Every function may be called from any thread. Calls on one stream are serialised, except
 *   eliza_inference_llm_stream_cancel, which returns at once, and ..._stats on llama.cpp. Different streams run
 *   independently.
 * Callbacks.  A callback may call any function, but may not wait for the call that it came from: a call that would
 *   have to is refused, and what it closes ends when that call returns.
 * Processes.  A child of fork() has none of the library's threads: it may not use handles that its parent made.
 * Output.  The library writes nothing to stdout or stderr. ELIZA_LOG names a file, or `stderr`, for its log.
 */
#ifndef ELIZA_INFERENCE_FFI_H_
#define ELIZA_INFERENCE_FFI_H_

#include <stddef.h>
#include <stdint.h>

/* The ABI this header describes: 15, or 12 for clients built against the 80-byte config (library built with
 * --//platforms:ffi_abi=12). A client checks eliza_inference_abi_version() before any other call: the config
 * struct has no size field, so the version is the only handshake. */
#ifndef ELIZA_INFERENCE_ABI_VERSION
#define ELIZA_INFERENCE_ABI_VERSION 15
#endif

#if defined(_WIN32)
#error "libelizainference does not support Windows."
#elif defined(__GNUC__)
#define ELIZA_INFERENCE_API __attribute__((visibility("default")))
#else
#define ELIZA_INFERENCE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------------------------------------------------
 * Status codes
 * ------------------------------------------------------------------------------------------------------------- */

#define ELIZA_OK 0
#define ELIZA_ERR_NOT_IMPLEMENTED (-1) /* this build, backend or model has no such feature */
#define ELIZA_ERR_INVALID_ARG (-2)     /* an argument, a handle or the order of calls is wrong */
#define ELIZA_ERR_BUNDLE_INVALID (-3)  /* the bundle or a file in it is missing, malformed or ambiguous */
#define ELIZA_ERR_FFI_FAULT (-4)       /* the runtime failed, or a file could not be mapped */
#define ELIZA_ERR_OOM (-5)             /* memory ran out, or a request would not fit */
#define ELIZA_ERR_ABI_MISMATCH (-6)    /* library and client disagree on the ABI */
#define ELIZA_ERR_CANCELLED (-7)       /* cancelled; sticky until reset or reset_keep */

/* ---------------------------------------------------------------------------------------------------------------
 * Library, contexts, memory
 * ------------------------------------------------------------------------------------------------------------- */

typedef struct EliInferenceContext EliInferenceContext;

/* The library's ABI as a decimal string with static lifetime: "15", or "12". */
ELIZA_INFERENCE_API const char* eliza_inference_abi_version(void);

/* Opens a context on the bundle directory `bundle_dir` (UTF-8 path). Reads the manifest, if there is one, and
 * checks the host's CPU; models are loaded when first needed. NULL on failure. */
ELIZA_INFERENCE_API EliInferenceContext* eliza_inference_create(const char* bundle_dir, char** out_error);

/* Ends a context. Its open streams are cancelled and closed first: their handles become invalid, calls in flight (on
 * llama.cpp also those that load a model, embed or score) return ELIZA_ERR_CANCELLED soon, and destroy returns when
 * they have. */
ELIZA_INFERENCE_API void eliza_inference_destroy(EliInferenceContext* context);

/* The status of the calling thread's last call that could fail: what it returned, or, where it returned NULL, the
 * ELIZA_ERR_* that its message belongs to. ELIZA_OK after a success (also one that returned a count), and before the
 * first call. Functions that cannot fail leave it alone: those that return nothing (so a client may free and close
 * before it asks), *_supported, eliza_inference_abi_version, and this one. (Ours, additive.) */
ELIZA_INFERENCE_API int eliza_inference_last_status(void);

/* Frees a string this library returned. Accepts NULL. */
ELIZA_INFERENCE_API void eliza_inference_free_string(char* string);

/* Frees a token array this library returned. Accepts NULL. */
ELIZA_INFERENCE_API void eliza_inference_free_tokens(int* tokens);

/* Advises that the model behind `region` will, or will not, be needed soon. Regions: "text", "mtp", "dflash"
 * (nothing to do: returns 0), "tts", "asr", "vad", "wakeword" (ELIZA_ERR_NOT_IMPLEMENTED). */
ELIZA_INFERENCE_API int eliza_inference_mmap_acquire(EliInferenceContext* context, const char* region,
                                                     char** out_error);
ELIZA_INFERENCE_API int eliza_inference_mmap_evict(EliInferenceContext* context, const char* region, char** out_error);

/* ---------------------------------------------------------------------------------------------------------------
 * Language model streams
 * ------------------------------------------------------------------------------------------------------------- */

typedef struct EliLlmStream EliLlmStream;

/* How a stream generates. Every string is copied during open. Layout (LP64): 88 bytes, 80 before ABI 15. */
typedef struct eliza_llm_stream_config_t {
  int32_t max_tokens;           /* tokens per generation; 0: until the end of the text or a full context */
  float temperature;            /* 0: greedy and deterministic; must be finite and >= 0 */
  float top_p;                  /* nucleus sampling; <= 0, NaN or >= 1: off */
  int32_t top_k;                /* 0: off */
  float repeat_penalty;         /* over the last 64 tokens, finite; <= 0, NaN or 1: off */
  int32_t slot_id;              /* -1: none; >= 0: which warm KV cache of `prompt_cache_key` to use */
  const char* prompt_cache_key; /* NULL: none */
  int32_t draft_min;            /* speculative decoding: fewest and most tokens to draft per step; */
  int32_t draft_max;            /* 0: no drafting */
  const char* mtp_drafter_path; /* drafter model, absolute or relative to the bundle; NULL: none */
  const char* gbnf_grammar;     /* GBNF that every generated token must satisfy; NULL: none */
  int32_t disable_thinking;     /* accepted for the chat templates of clients; no effect on token ids */
  int32_t n_gpu_layers;         /* -1: all; 0: CPU only */
  const char* cache_type_k;     /* KV cache types, for example "f16", "q8_0"; NULL: the runtime's default */
  const char* cache_type_v;
#if ELIZA_INFERENCE_ABI_VERSION >= 15
  int32_t context_size; /* tokens; 0: the bundle's, else the model's own */
#endif
} eliza_llm_stream_config_t;

/* Greedy decoding on the CPU until the end of the text. */
#if ELIZA_INFERENCE_ABI_VERSION >= 15
#define ELIZA_LLM_STREAM_CONFIG_DEFAULT {0, 0.0f, 1.0f, 0, 1.0f, -1, NULL, 0, 0, NULL, NULL, 0, 0, NULL, NULL, 0}
#else
#define ELIZA_LLM_STREAM_CONFIG_DEFAULT {0, 0.0f, 1.0f, 0, 1.0f, -1, NULL, 0, 0, NULL, NULL, 0, 0, NULL, NULL}
#endif

/* 1 when this library can stream text, draft speculatively, quantise the KV cache; else 0. No work is done. */
ELIZA_INFERENCE_API int eliza_inference_llm_stream_supported(void);
ELIZA_INFERENCE_API int eliza_inference_llm_mtp_supported(void);
ELIZA_INFERENCE_API int eliza_inference_llm_kv_quant_supported(void);

/* Selects a backend, loads the model if no other stream has it, and opens a stream. ELIZA_LLM_BACKEND, when set,
 * decides alone: open fails, and says why, where that backend cannot serve. NULL on failure. */
ELIZA_INFERENCE_API EliLlmStream* eliza_inference_llm_stream_open(EliInferenceContext* context,
                                                                  const eliza_llm_stream_config_t* config,
                                                                  char** out_error);

/* Appends `num_tokens` >= 1 token ids of the model's own vocabulary to the context, and arms a generation.
 * Runs in chunks: a cancel takes effect between two of them. Exactly 0 on success. */
ELIZA_INFERENCE_API int eliza_inference_llm_stream_prefill(EliLlmStream* stream, const int32_t* token_ids,
                                                           size_t num_tokens, char** out_error);

/* Generates. Returns 0: more to come, 1: the generation has ended, or an error.
 *
 * At most `tokens_cap` >= 1 tokens are decoded and written to `tokens_out`, their number to *num_tokens_out; 0 of
 * them with a return of 0 means: call again. `text_out` gets their text: whole UTF-8 characters, NUL-terminated
 * within `text_cap` bytes. A character split over tokens is held back until it is complete; malformed bytes
 * (and a NUL) become U+FFFD. A token whose text does not fit waits, with its id, for the next call; where it does not
 * fit an empty buffer either, ELIZA_ERR_INVALID_ARG names the size needed and nothing is lost.
 * The end: max_tokens, an end-of-generation token (not returned), or a full context. What comes together with
 * 1 counts. Afterwards next returns 1 with nothing, until a prefill appends to the context and starts another
 * generation. `drafter_drafted_out` and `drafter_accepted_out` (either may be NULL) get this call's counts of
 * speculative tokens. */
ELIZA_INFERENCE_API int eliza_inference_llm_stream_next(EliLlmStream* stream, int32_t* tokens_out, size_t tokens_cap,
                                                        size_t* num_tokens_out, char* text_out, size_t text_cap,
                                                        int32_t* drafter_drafted_out, int32_t* drafter_accepted_out,
                                                        char** out_error);

/* Cancels, from any thread, without waiting: a prefill or next in flight returns ELIZA_ERR_CANCELLED within one
 * chunk or one decode step, and so does every later call, until a reset. */
ELIZA_INFERENCE_API int eliza_inference_llm_stream_cancel(EliLlmStream* stream);

/* Saves the KV cache and what belongs to it to `filename`, atomically, or restores it. A file that another model
 * wrote, or that is damaged, is refused and leaves the stream as it was. Exactly 0 on success. */
ELIZA_INFERENCE_API int eliza_inference_llm_stream_save_slot(EliLlmStream* stream, const char* filename,
                                                             char** out_error);
ELIZA_INFERENCE_API int eliza_inference_llm_stream_restore_slot(EliLlmStream* stream, const char* filename,
                                                                char** out_error);

/* Empties the context and forgets a cancel; the stream stays warm. */
ELIZA_INFERENCE_API int eliza_inference_llm_stream_reset(EliLlmStream* stream);

/* Keeps the first `n_keep` >= 0 tokens of the context, drops the rest, and forgets a cancel. Returns how many
 * tokens were kept: `n_keep` (or all, where there were fewer), or 0 where the runtime cannot keep a part and
 * everything was dropped. */
ELIZA_INFERENCE_API int eliza_inference_llm_stream_reset_keep(EliLlmStream* stream, int32_t n_keep);

/* Closes a stream. Cancels a call in flight on another thread, and returns when that call has. */
ELIZA_INFERENCE_API void eliza_inference_llm_stream_close(EliLlmStream* stream);

/* Seeds the sampler. Before the first next of a generation; without it every stream draws its own seed.
 * Temperature 0 ignores it. (Ours, additive.) */
ELIZA_INFERENCE_API int eliza_inference_llm_stream_set_seed(EliLlmStream* stream, uint64_t seed);

/* A JSON object on the stream so far: backend, device, stop_reason, token counts, timings, KV cache use, drafted
 * and accepted tokens, ignored options. docs/abi.md lists the keys. Does not wait for a call in flight on llama.cpp;
 * kv_used then tells how far a prefill is. (Ours, additive.) */
ELIZA_INFERENCE_API int eliza_inference_llm_stream_stats(EliLlmStream* stream, char** out_json, char** out_error);

/* A JSON object on the selection for this context's bundle: the value of ELIZA_LLM_BACKEND, the backend an open would
 * choose now, and for each known backend whether it is compiled in, available, able to serve the bundle, its rank,
 * and why. docs/backends.md lists the keys. (Ours, additive.) */
ELIZA_INFERENCE_API int eliza_inference_llm_backend_report(EliInferenceContext* context, char** out_json,
                                                           char** out_error);

/* ---------------------------------------------------------------------------------------------------------------
 * Vocabulary and model
 * ------------------------------------------------------------------------------------------------------------- */

ELIZA_INFERENCE_API int eliza_inference_tokenize_supported(void);

/* Token ids of `text` (`text_len` bytes, may hold NULs). `add_special`: add what the model expects at the start
 * and the end, such as BOS. `parse_special`: the text of a special token, such as "<|im_start|>", becomes that token;
 * pass 0 for text from users. *out_tokens is never NULL on success, also for 0 tokens. */
ELIZA_INFERENCE_API int eliza_inference_tokenize(EliInferenceContext* context, const char* text, size_t text_len,
                                                 int add_special, int parse_special, int** out_tokens,
                                                 size_t* out_count, char** out_error);

/* The text of `num_tokens` ids, as UTF-8 (malformed bytes become U+FFFD), NUL-terminated within `text_cap`.
 * `remove_special`: leave out what `add_special` adds. `unparse_special`: special tokens appear as their text.
 * Returns the bytes written, without the NUL. A buffer that is too small is an error that names the size. */
ELIZA_INFERENCE_API int eliza_inference_detokenize(EliInferenceContext* context, const int* tokens, size_t num_tokens,
                                                   int remove_special, int unparse_special, char* text_out,
                                                   size_t text_cap, char** out_error);

/* The value of a key of the model's metadata as text, for example "tokenizer.chat_template" or
 * "general.architecture". A key the model has not is ELIZA_ERR_INVALID_ARG. (Ours, additive.) */
ELIZA_INFERENCE_API int eliza_inference_model_meta(EliInferenceContext* context, const char* key, char** out_value,
                                                   char** out_error);

/* The GBNF grammar of a JSON schema, for gbnf_grammar. (Ours, additive.) */
ELIZA_INFERENCE_API int eliza_inference_json_schema_to_gbnf(const char* schema, char** out_gbnf, char** out_error);

ELIZA_INFERENCE_API int eliza_inference_embed_supported(void);

/* The embedding of `text`, L2-normalised. `pooling`: 1 mean, 2 first token (CLS), 3 last token. *out_dim is the
 * number of floats, also where `out_cap` floats are too few (ELIZA_ERR_INVALID_ARG). Exactly 0 on success. */
ELIZA_INFERENCE_API int eliza_inference_embed(EliInferenceContext* context, const char* text, size_t text_len,
                                              int pooling, float* out, size_t out_cap, int* out_dim, char** out_error);

ELIZA_INFERENCE_API int eliza_inference_llm_eot_supported(void);

/* After `num_tokens` ids: the probability of `target_token`, and the likeliest token with its probability.
 * Exactly 0 on success. */
ELIZA_INFERENCE_API int eliza_inference_llm_eot_score(EliInferenceContext* context, const int32_t* token_ids,
                                                      size_t num_tokens, int32_t target_token, float* out_probability,
                                                      int32_t* out_top_token, float* out_top_probability,
                                                      char** out_error);

/* One speculative step. Indices count generated tokens from 0; -1/-1 where nothing was rejected. The arrays live
 * during the callback. */
typedef struct EliVerifierEvent {
  const int* accepted_token_ids;
  size_t n_accepted;
  int rejected_from;
  int rejected_to;
  const int* corrected_token_ids;
  size_t n_corrected;
} EliVerifierEvent;

typedef void (*eliza_verifier_callback_t)(const EliVerifierEvent* event, void* user_data);

/* Calls `callback` once per speculative step of this context's streams, on the thread that is in next. NULL ends
 * it. ELIZA_ERR_NOT_IMPLEMENTED where eliza_inference_llm_mtp_supported is 0. */
ELIZA_INFERENCE_API int eliza_inference_set_verifier_callback(EliInferenceContext* context,
                                                              eliza_verifier_callback_t callback, void* user_data,
                                                              char** out_error);

/* ---------------------------------------------------------------------------------------------------------------
 * Speech and vision
 *
 * Clients bind each family all or nothing, so every symbol exists. This library serves text: the *_supported
 * functions below return 0, the others ELIZA_ERR_NOT_IMPLEMENTED (or NULL) with a message. PCM is mono float in
 * [-1, 1]; `sample_rate` is in Hz.
 * ------------------------------------------------------------------------------------------------------------- */

/* Text to speech. Returns the number of samples written. */
ELIZA_INFERENCE_API int eliza_inference_tts_synthesize(EliInferenceContext* context, const char* text, size_t text_len,
                                                       const char* preset, float* pcm_out, size_t pcm_cap,
                                                       char** out_error);
ELIZA_INFERENCE_API int eliza_inference_tts_stream_supported(void);
typedef int (*eliza_tts_chunk_callback_t)(const float* pcm, size_t num_samples, int is_final, void* user_data);
ELIZA_INFERENCE_API int eliza_inference_tts_synthesize_stream(EliInferenceContext* context, const char* text,
                                                              size_t text_len, const char* preset,
                                                              eliza_tts_chunk_callback_t on_chunk, void* user_data,
                                                              char** out_error);
ELIZA_INFERENCE_API int eliza_inference_cancel_tts(EliInferenceContext* context, char** out_error);
ELIZA_INFERENCE_API int eliza_inference_encode_reference(EliInferenceContext* context, const float* pcm,
                                                         size_t num_samples, int sample_rate, int* out_k, int* out_t,
                                                         int** out_tokens, char** out_error);

/* Speech recognition. */
ELIZA_INFERENCE_API int eliza_inference_asr_transcribe(EliInferenceContext* context, const float* pcm,
                                                       size_t num_samples, int sample_rate, char* text_out,
                                                       size_t text_cap, char** out_error);
ELIZA_INFERENCE_API int eliza_inference_asr_timestamps_supported(void);
ELIZA_INFERENCE_API int eliza_inference_asr_transcribe_timed(EliInferenceContext* context, const float* pcm,
                                                             size_t num_samples, int sample_rate, char* text_out,
                                                             size_t text_cap, int* start_ms_out, int* end_ms_out,
                                                             size_t* num_words_inout, char** out_error);
typedef struct EliAsrStream EliAsrStream;
ELIZA_INFERENCE_API int eliza_inference_asr_stream_supported(void);
ELIZA_INFERENCE_API EliAsrStream* eliza_inference_asr_stream_open(EliInferenceContext* context, int sample_rate,
                                                                  char** out_error);
ELIZA_INFERENCE_API int eliza_inference_asr_stream_feed(EliAsrStream* stream, const float* pcm, size_t num_samples,
                                                        char** out_error);
ELIZA_INFERENCE_API int eliza_inference_asr_stream_partial(EliAsrStream* stream, char* text_out, size_t text_cap,
                                                           int* tokens_out, size_t* num_tokens_inout, char** out_error);
ELIZA_INFERENCE_API int eliza_inference_asr_stream_finish(EliAsrStream* stream, char* text_out, size_t text_cap,
                                                          int* tokens_out, size_t* num_tokens_inout, char** out_error);
ELIZA_INFERENCE_API void eliza_inference_asr_stream_close(EliAsrStream* stream);

/* Voice activity. */
typedef struct EliVad EliVad;
ELIZA_INFERENCE_API int eliza_inference_vad_supported(void);
ELIZA_INFERENCE_API EliVad* eliza_inference_vad_open(EliInferenceContext* context, int sample_rate, char** out_error);
ELIZA_INFERENCE_API int eliza_inference_vad_process(EliVad* vad, const float* pcm, size_t num_samples,
                                                    float* out_probability, char** out_error);
ELIZA_INFERENCE_API int eliza_inference_vad_reset(EliVad* vad, char** out_error);
ELIZA_INFERENCE_API void eliza_inference_vad_close(EliVad* vad);

/* Wake word. */
typedef struct EliWakeWord EliWakeWord;
ELIZA_INFERENCE_API int eliza_inference_wakeword_supported(void);
ELIZA_INFERENCE_API EliWakeWord* eliza_inference_wakeword_open(EliInferenceContext* context, int sample_rate,
                                                               const char* head, char** out_error);
ELIZA_INFERENCE_API int eliza_inference_wakeword_score(EliWakeWord* wakeword, const float* pcm, size_t num_samples,
                                                       float* out_score, char** out_error);
ELIZA_INFERENCE_API int eliza_inference_wakeword_reset(EliWakeWord* wakeword, char** out_error);
ELIZA_INFERENCE_API void eliza_inference_wakeword_close(EliWakeWord* wakeword);

/* Speaker embedding. */
typedef struct EliSpeaker EliSpeaker;
ELIZA_INFERENCE_API int eliza_inference_speaker_supported(void);
ELIZA_INFERENCE_API EliSpeaker* eliza_inference_speaker_open(EliInferenceContext* context, const char* gguf,
                                                             char** out_error);
ELIZA_INFERENCE_API int eliza_inference_speaker_embed(EliSpeaker* speaker, const float* pcm, size_t num_samples,
                                                      float* out, char** out_error);
ELIZA_INFERENCE_API void eliza_inference_speaker_free(float* embedding);
ELIZA_INFERENCE_API void eliza_inference_speaker_close(EliSpeaker* speaker);

/* Speaker diarization. */
typedef struct EliDiariz EliDiariz;
ELIZA_INFERENCE_API int eliza_inference_diariz_supported(void);
ELIZA_INFERENCE_API EliDiariz* eliza_inference_diariz_open(EliInferenceContext* context, const char* gguf,
                                                           char** out_error);
ELIZA_INFERENCE_API int eliza_inference_diariz_segment(EliDiariz* diariz, const float* pcm, size_t num_samples,
                                                       int8_t* labels_out, size_t* num_labels_inout, char** out_error);
ELIZA_INFERENCE_API void eliza_inference_diariz_close(EliDiariz* diariz);

/* Kokoro text to speech. */
ELIZA_INFERENCE_API int eliza_inference_kokoro_supported(void);
ELIZA_INFERENCE_API int eliza_inference_kokoro_load(EliInferenceContext* context, const char* gguf, const char* voice,
                                                    int style_dim, char** out_error);
ELIZA_INFERENCE_API int eliza_inference_kokoro_synthesize(EliInferenceContext* context, const char* text,
                                                          size_t text_len, float speed, float* pcm_out, size_t pcm_cap,
                                                          char** out_error);
ELIZA_INFERENCE_API int eliza_inference_kokoro_sample_rate(EliInferenceContext* context);

/* Vision. */
ELIZA_INFERENCE_API int eliza_inference_vision_supported(void);
ELIZA_INFERENCE_API int eliza_inference_describe_image(EliInferenceContext* context, const unsigned char* image,
                                                       size_t image_size, const char* mmproj, const char* prompt,
                                                       char* text_out, size_t text_cap, char** out_error);

#if ELIZA_INFERENCE_ABI_VERSION >= 13
ELIZA_INFERENCE_API int eliza_inference_vision_stream_supported(void);
ELIZA_INFERENCE_API EliLlmStream* eliza_inference_describe_image_stream_open(EliInferenceContext* context,
                                                                             const unsigned char* image,
                                                                             size_t image_size, const char* mmproj,
                                                                             const char* prompt, char** out_error);
#endif

#if ELIZA_INFERENCE_ABI_VERSION >= 14
ELIZA_INFERENCE_API int eliza_inference_kokoro_g2p_kind(EliInferenceContext* context);
ELIZA_INFERENCE_API int eliza_inference_kokoro_synthesize_ipa(EliInferenceContext* context, const char* ipa,
                                                              size_t ipa_len, float speed, float* pcm_out,
                                                              size_t pcm_cap, char** out_error);
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ELIZA_INFERENCE_FFI_H_ */
