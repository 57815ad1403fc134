/* A small backend that is all our own code: what the layers around a runtime do is tested with it in full (whole
 * characters, caps, slot files, cancels), without a line of llama.cpp. So it builds in seconds under any sanitizer, and
 * every allocation, read and write in the process is ours.
 *
 * Its tokens are bytes. Each is followed by the next one of the alphabet, a to z and é (two tokens), and around again;
 * any other is followed by a. It serves every bundle directory and outranks llama.cpp, which here is a stand-in
 * that says it is not there (no-llama-cpp.cc).
 */
#ifndef TESTS_ALPHABET_ALPHABET_BACKEND_H_
#define TESTS_ALPHABET_ALPHABET_BACKEND_H_

#include "native/include/eliza-inference-ffi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Registers the backend, "alphabet"; once more does nothing. */
ELIZA_INFERENCE_API void eliza_test_alphabet_backend(void);

/* Sessions that exist now. */
ELIZA_INFERENCE_API int eliza_test_alphabet_sessions(void);

#ifdef __cplusplus
}
#endif

#endif /* TESTS_ALPHABET_ALPHABET_BACKEND_H_ */
