// libelizainference, opened at run time: the table of its functions, and its errors as exceptions.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

// The 88-byte config of ABI 15 begins with the 80 bytes of ABI 12, so it serves a library of either.
#undef ELIZA_INFERENCE_ABI_VERSION
#include "native/include/eliza-inference-ffi.h"

namespace eliza::python {

// Becomes the exception class of its status, in elizainference._errors.
class StatusError : public std::runtime_error {
 public:
  StatusError(int status, const std::string& message) : std::runtime_error(message), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

#define ELIZA_FUNCTIONS(X)   \
  X(abi_version)             \
  X(create)                  \
  X(destroy)                 \
  X(free_string)             \
  X(free_tokens)             \
  X(llm_backend_report)      \
  X(llm_stream_open)         \
  X(llm_stream_prefill)      \
  X(llm_stream_next)         \
  X(llm_stream_cancel)       \
  X(llm_stream_save_slot)    \
  X(llm_stream_restore_slot) \
  X(llm_stream_reset)        \
  X(llm_stream_reset_keep)   \
  X(llm_stream_set_seed)     \
  X(llm_stream_stats)        \
  X(llm_stream_close)        \
  X(tokenize)                \
  X(detokenize)              \
  X(model_meta)              \
  X(json_schema_to_gbnf)     \
  X(embed)                   \
  X(set_verifier_callback)   \
  X(last_status)             \
  X(llm_eot_score)

struct Library {
#define ELIZA_DECLARE(name) decltype(&eliza_inference_##name) name = nullptr;
  ELIZA_FUNCTIONS(ELIZA_DECLARE)
#undef ELIZA_DECLARE
  int abi = 0;
  std::string path;
};

// The library that load() has opened. Throws StatusError where it was not called.
const Library& library();

// Loads the first of `paths` that is a library for us, unless one is loaded already. Returns the path of the one in
// use. Throws StatusError; its message has the reason for each path.
std::string load(const std::vector<std::string>& paths);

// Receives a string the library allocates.
class OwnedString {
 public:
  OwnedString() = default;
  OwnedString(const OwnedString&) = delete;
  OwnedString& operator=(const OwnedString&) = delete;
  ~OwnedString() { library().free_string(string_); }

  char** out() { return &string_; }
  std::string str_or(const char* otherwise) const { return string_ == nullptr ? otherwise : string_; }

 private:
  char* string_ = nullptr;
};

inline void check(int status, const OwnedString& error) {
  // Only memory that ran out leaves no message.
  if (status < 0) throw StatusError(status, error.str_or("out of memory"));
}

}  // namespace eliza::python
