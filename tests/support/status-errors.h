// For the Python modules of tests: errors of the library as Python's RuntimeError, "STATUS: message".
#pragma once

#include <pybind11/pybind11.h>

#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>

#include "native/base/error.h"
#include "native/text/utf8-gate.h"

namespace eliza {

// Throws where a call of a session failed, and frees its message.
inline void check_status(int status, char* error) {
  if (status >= 0) return;
  const std::string message = error == nullptr ? "" : error;
  std::free(error);
  throw std::runtime_error(std::to_string(status) + ": " + message);
}

// What a module calls once.
inline void translate_errors() {
  pybind11::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const Error& error) {
      // What a mutated file says need not be UTF-8; the C ABI does the same.
      PyErr_SetString(PyExc_RuntimeError, to_valid_utf8(std::to_string(error.status()) + ": " + error.what()).c_str());
    }
  });
}

}  // namespace eliza
