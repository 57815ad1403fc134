// Checks of arguments, one way for every entry point: Error(ELIZA_ERR_INVALID_ARG) that names the argument.
#pragma once

#include <cstddef>
#include <string>

#include "native/base/error.h"

namespace eliza {

// A pointer the call reads or writes through.
inline void require(const void* pointer, const char* name) {
  if (pointer == nullptr) throw Error(ELIZA_ERR_INVALID_ARG, std::string(name) + " is NULL");
}

// A path or a name.
inline void require_text(const char* text, const char* name) {
  require(text, name);
  if (*text == '\0') throw Error(ELIZA_ERR_INVALID_ARG, std::string(name) + " is empty");
}

// An array of `count` elements; NULL is fine for none.
inline void require_array(const void* array, size_t count, const char* name) {
  if (array == nullptr && count > 0) {
    throw Error(ELIZA_ERR_INVALID_ARG, std::string(name) + " is NULL, with a length of " + std::to_string(count));
  }
}

}  // namespace eliza
