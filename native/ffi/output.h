// What calls hand out in malloc'ed memory, which clients free with free_string, free_tokens or free().
#pragma once

#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "native/ffi/arguments.h"

namespace eliza {

// A pointer to hand something out through, which a failing call leaves NULL.
template <typename T>
void require_output(T** out, const char* name) {
  require(out, name);
  *out = nullptr;
}

template <typename T>
T* new_copy(const T* data, size_t count) {
  // malloc(0) may be NULL, which would read as a failure.
  T* copy = static_cast<T*>(std::malloc(count == 0 ? 1 : count * sizeof(T)));
  if (copy == nullptr) throw std::bad_alloc();
  if (count > 0) std::memcpy(copy, data, count * sizeof(T));
  return copy;
}

inline char* new_text(const std::string& text) { return new_copy(text.c_str(), text.size() + 1); }

}  // namespace eliza
