// One error type inside the library, and the wall that turns it into a status and a message at its edge.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "native/include/eliza-inference-ffi.h"

namespace eliza {

// A failure with its ABI status. The message says what was wrong, with which value, and what to do.
class Error : public std::runtime_error {
 public:
  Error(int status, const std::string& message) : std::runtime_error(message), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

// Stores a malloc'ed copy of `message` in *out_error (where out_error is not null; malformed UTF-8 becomes U+FFFD, so
// that every client can decode it, and control characters \xNN, so that it can be printed) and returns `status`.
// *out_error is null where memory has run out.
int set_error(char** out_error, int status, std::string_view message) noexcept;

// The status of this thread's last set_error, and forgets it; ELIZA_OK where there was none. For who has called
// something that leaves a message and returns no status: a function of the seam that returns a pointer.
int take_error_status() noexcept;

// Sets *out_error from the exception being handled (call in a catch block only) and returns its status: an Error's
// own, ELIZA_ERR_OOM for std::bad_alloc, ELIZA_ERR_FFI_FAULT for anything else.
int set_error_from_exception(char** out_error) noexcept;

// What the system says of an errno, for a message.
std::string system_reason(int error_number);

// Runs `body` behind the exception wall: its result, or the status of what it threw. Clears *out_error first, and frees
// a message that `body` had left there when it threw.
template <typename Body>
int guard(char** out_error, Body&& body) noexcept {
  if (out_error != nullptr) *out_error = nullptr;
  try {
    return std::forward<Body>(body)();
  } catch (...) {
    if (out_error != nullptr) std::free(*out_error);
    return set_error_from_exception(out_error);
  }
}

}  // namespace eliza
