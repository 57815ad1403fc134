#include "native/base/error.h"

#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "native/text/quote.h"

namespace eliza {
namespace {

thread_local int error_status = ELIZA_OK;

}  // namespace

int take_error_status() noexcept { return std::exchange(error_status, ELIZA_OK); }

int set_error(char** out_error, int status, std::string_view message) noexcept {
  error_status = status;
  if (out_error == nullptr) return status;
  *out_error = nullptr;
  try {
    // A message quotes paths, environment variables and runtimes' own words, and none of them need be UTF-8, or fit for
    // a terminal.
    const std::string text = printable(message);
    // malloc, not new: the JNI bridge calls free() on it.
    char* copy = static_cast<char*>(std::malloc(text.size() + 1));
    if (copy == nullptr) return status;
    std::memcpy(copy, text.c_str(), text.size() + 1);
    *out_error = copy;
  } catch (...) {
    // Memory has run out: the status has to say it alone.
  }
  return status;
}

int set_error_from_exception(char** out_error) noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return set_error(out_error, error.status(), error.what());
  } catch (const std::bad_alloc&) {
    return set_error(out_error, ELIZA_ERR_OOM, "out of memory");
  } catch (const std::exception& error) {
    return set_error(out_error, ELIZA_ERR_FFI_FAULT, error.what());
  } catch (...) {
    return set_error(out_error, ELIZA_ERR_FFI_FAULT, "an exception that carries no message");
  }
}

std::string system_reason(int error_number) { return std::generic_category().message(error_number); }

}  // namespace eliza
