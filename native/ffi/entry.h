// How a call enters the library: behind the exception wall, and with its outcome kept for eliza_inference_last_status.
//
// Every function of the C ABI that can fail goes through here, so that one that returns a pointer, which has room for
// a message but not for a status, is as typed as one that returns an int. What ends or frees something does not: it
// cannot fail, and a client that tidies up before it asks shall still find the status it is after.
#pragma once

#include <utility>

#include "native/base/error.h"

namespace eliza {

// The status of this thread's last call that could fail, ELIZA_OK where it succeeded, and before any.
int last_status() noexcept;

// Keeps the outcome of a call, a status or a count, and returns it.
int keep_status(int result) noexcept;

// The result of `body`, or the status of what it threw.
template <typename Body>
int enter(char** out_error, Body&& body) noexcept {
  return keep_status(guard(out_error, std::forward<Body>(body)));
}

// The same for functions that return a pointer, as `body` does: nullptr on failure.
template <typename T, typename Body>
T* enter_opening(char** out_error, Body&& body) noexcept {
  T* opened = nullptr;
  enter(out_error, [&] {
    opened = std::forward<Body>(body)();
    return ELIZA_OK;
  });
  return opened;
}

}  // namespace eliza
