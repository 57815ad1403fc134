// What calls hand out in malloc'ed memory, which clients free with free_string, free_tokens or free().
#pragma once

#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

namespace eliza {

// Before anything can fail: a client that misses the error shall not find a former result, or garbage, in `out`.
template <typename T>
void clear(T* out) {
  if (out != nullptr) *out = T();
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
