#include "native/ffi/entry.h"

#include "native/include/eliza-inference-ffi.h"

namespace eliza {
namespace {

// Trivial, so that no destructor keeps the library loaded after dlclose.
thread_local int status_of_last_call = ELIZA_OK;

}  // namespace

int last_status() noexcept { return status_of_last_call; }

int keep_status(int result) noexcept {
  status_of_last_call = result < 0 ? result : ELIZA_OK;
  return result;
}

}  // namespace eliza

int eliza_inference_last_status(void) { return eliza::last_status(); }
