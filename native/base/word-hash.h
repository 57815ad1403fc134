// A fast hash of bytes that finds accidents, not forgers: the checksum of files that this library writes, and the
// fingerprint of model files.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace eliza {

inline constexpr uint64_t kWordHashSeed = 0xcbf29ce484222325;

// FNV-1a over words of eight bytes, the last one filled with zeros; goes on from `value`.
inline uint64_t word_hash(uint64_t value, const void* data, size_t size) {
  const char* bytes = static_cast<const char*>(data);
  for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + i, std::min(sizeof word, size - i));
    value = (value ^ word) * 0x100000001b3;
    value ^= value >> 29;
  }
  return value;
}

}  // namespace eliza
