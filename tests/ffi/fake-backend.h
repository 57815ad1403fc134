/* A backend for tests, behind the C ABI of a library like the real one: //tests/ffi:elizainference_fake.
 *
 * Left alone it serves every bundle directory, outranks llama.cpp, and streams "a", token 97, one per call, until
 * max_tokens. With hooks it does what the test says: each virtual function of the seam calls the hook of its name, with
 * its own arguments, and returns what the hook returns. Python hands in functions through ctypes.
 */
#ifndef TESTS_FFI_FAKE_BACKEND_H_
#define TESTS_FFI_FAKE_BACKEND_H_

#include "native/include/eliza-inference-ffi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a hook of a call may ask for besides returning. */
typedef enum FakeThrow {
  FAKE_THROW_NOTHING = 0,
  FAKE_THROW_ERROR, /* eliza::Error(ELIZA_ERR_BUNDLE_INVALID, "fake error") */
  FAKE_THROW_BAD_ALLOC,
  FAKE_THROW_STD_EXCEPTION, /* std::runtime_error("fake exception") */
  FAKE_THROW_INT,
} FakeThrow;

/* `session` counts the sessions of the process from 1. Hooks that are NULL leave the function as it is by itself. */
typedef struct FakeHooks {
  int (*can_serve)(const char* bundle_dir);
  /* 1: a session, 0: NULL. */
  int (*open)(EliInferenceContext* context, const eliza_llm_stream_config_t* config, char** out_error);
  int (*prefill)(int session, const int32_t* token_ids, size_t num_tokens, char** out_error);
  int (*next)(int session, int32_t* tokens_out, size_t tokens_cap, size_t* num_tokens_out, char* text_out,
              size_t text_cap, int32_t* drafter_drafted_out, int32_t* drafter_accepted_out, char** out_error);
  int (*cancel)(int session);
  int (*reset)(int session);
  int (*reset_keep)(int session, int32_t n_keep);
  int (*save_slot)(int session, const char* filename, char** out_error);
  int (*restore_slot)(int session, const char* filename, char** out_error);
  int (*set_seed)(int session, uint64_t seed);
  int (*has_concurrent_stats)(int session);
  void (*deleted)(int session);
} FakeHooks;

/* Registers the backend, "fake", and sets its hooks (NULL: none). They are copied. */
ELIZA_INFERENCE_API void eliza_test_fake_backend(const FakeHooks* hooks);

/* Called in a hook: the function that called it throws when the hook has returned. */
ELIZA_INFERENCE_API void eliza_test_throw(FakeThrow what);

/* Called in a hook: leaves a message as the library's own backends do, with its status. */
ELIZA_INFERENCE_API void eliza_test_set_error(char** out_error, int status, const char* message);

/* From here on each open, prefill and next waits, in C++, before it does anything, until this is called with 0. */
ELIZA_INFERENCE_API void eliza_test_pause(int pause);

/* How many wait. */
ELIZA_INFERENCE_API int eliza_test_paused(void);

/* Sessions that are open now. */
ELIZA_INFERENCE_API int eliza_test_live_sessions(void);

#ifdef __cplusplus
}
#endif

#endif /* TESTS_FFI_FAKE_BACKEND_H_ */
