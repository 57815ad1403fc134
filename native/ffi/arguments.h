// Checks of arguments, one way for every entry point: Error(ELIZA_ERR_INVALID_ARG) that names the argument.
#pragma once

#include <climits>
#include <cstddef>
#include <string>

#include "native/base/error.h"

namespace eliza {

// A pointer the call reads or writes through.
inline void require(const void* pointer, const char* name) {
  if (pointer == nullptr) throw Error(ELIZA_ERR_INVALID_ARG, std::string(name) + " is NULL, and this call needs it");
}

// A path, a name, a text that says something.
inline void require_text(const char* text, const char* name) {
  require(text, name);
  if (*text == '\0') throw Error(ELIZA_ERR_INVALID_ARG, std::string(name) + " is empty, and this call needs it");
}

// An array of `count` elements; NULL is fine for none. A count that no runtime can take is more likely a mistake, such
// as a negative number, than an array of that size.
inline void require_array(const void* array, size_t count, const char* name, const char* count_name) {
  if (count > INT_MAX) {
    throw Error(ELIZA_ERR_INVALID_ARG, std::string(count_name) + " is " + std::to_string(count) +
                                           ", above the limit of " + std::to_string(INT_MAX));
  }
  if (count > 0) require(array, name);
}

}  // namespace eliza
