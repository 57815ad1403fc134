// Valid UTF-8, a character at a time.
#pragma once

#include <cstddef>
#include <string_view>

namespace eliza {

// Bytes of the character that starts with `lead`.
inline size_t utf8_size(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

// The character whose first byte is at `at`.
inline char32_t utf8_at(std::string_view text, size_t at) {
  const size_t size = utf8_size(text[at]);
  if (size == 1) return static_cast<unsigned char>(text[at]);
  char32_t character = static_cast<unsigned char>(text[at]) & (0xFFu >> (size + 1));
  for (size_t i = 1; i < size && at + i < text.size(); ++i) {
    character = character << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3Fu);
  }
  return character;
}

}  // namespace eliza
