#include "native/text/utf8-gate.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace eliza {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// What a byte sequence starts with.
struct Subpart {
  enum Kind { kCharacter, kIllFormed, kUnfinished };
  Kind kind;
  size_t size;  // >= 1; kUnfinished: the whole sequence
};

// Classifies the start of `size` >= 1 bytes by Unicode 15, table 3-7: the first byte gives the length of the character
// and the range of the second byte, which leaves out overlong forms, surrogates and what lies beyond U+10FFFF.
Subpart first_subpart(const char* bytes, size_t size) {
  const auto byte = [bytes](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char first = byte(0);
  if (first == 0) return {Subpart::kIllFormed, 1};
  if (first < 0x80) return {Subpart::kCharacter, 1};
  if (first < 0xC2 || first > 0xF4) return {Subpart::kIllFormed, 1};

  const size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  unsigned char low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  unsigned char high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i < length; ++i) {
    if (i == size) return {Subpart::kUnfinished, size};
    if (byte(i) < low || byte(i) > high) return {Subpart::kIllFormed, i};
    low = 0x80;
    high = 0xBF;
  }
  return {Subpart::kCharacter, length};
}

// How many bytes from the start are ASCII other than NUL: nearly all text of nearly all tokens, so eight at a time.
size_t ascii_prefix(const char* bytes, size_t size) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  constexpr uint64_t kHighBits = 0x8080808080808080;
  size_t i = 0;
  for (; i + sizeof(uint64_t) <= size; i += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, bytes + i, sizeof word);
    // A byte >= 0x80 has its high bit set; where there is none, the subtraction sets one iff a byte is 0.
    if (((word | (word - kOnes)) & kHighBits) != 0) break;
  }
  while (i < size && bytes[i] != 0 && static_cast<unsigned char>(bytes[i]) < 0x80) ++i;
  return i;
}

}  // namespace

void Utf8Gate::push(std::string_view bytes, std::string* out) {
  size_t at = 0;
  // A held character takes byte after byte until it is whole or can never be. A byte that does not fit is no part of
  // it and starts something of its own.
  while (held_size_ > 0 && at < bytes.size()) {
    held_[held_size_] = bytes[at];
    const Subpart part = first_subpart(held_, held_size_ + 1);
    if (part.kind == Subpart::kIllFormed) {
      out->append(kReplacement);
      held_size_ = 0;
      break;
    }
    ++at;
    ++held_size_;
    if (part.kind == Subpart::kCharacter) {
      out->append(held_, held_size_);
      held_size_ = 0;
    }
  }

  size_t copied = at;  // [copied, at) is well-formed and not yet in `out`
  while (at < bytes.size()) {
    at += ascii_prefix(bytes.data() + at, bytes.size() - at);
    if (at == bytes.size()) break;
    const Subpart part = first_subpart(bytes.data() + at, bytes.size() - at);
    if (part.kind == Subpart::kCharacter) {
      at += part.size;
      continue;
    }
    out->append(bytes.substr(copied, at - copied));
    if (part.kind == Subpart::kUnfinished) {
      std::memcpy(held_, bytes.data() + at, part.size);
      held_size_ = part.size;
    } else {
      out->append(kReplacement);
    }
    at += part.size;
    copied = at;
  }
  out->append(bytes.substr(copied));
}

void Utf8Gate::finish(std::string* out) {
  if (held_size_ > 0) out->append(kReplacement);
  held_size_ = 0;
}

std::string to_valid_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  Utf8Gate gate;
  gate.push(bytes, &text);
  gate.finish(&text);
  return text;
}

std::string to_valid_utf8_with_nuls(std::string_view bytes) {
  std::string result;
  result.reserve(bytes.size());
  for (size_t begin = 0;;) {
    const size_t end = std::min(bytes.find('\0', begin), bytes.size());
    result += to_valid_utf8(bytes.substr(begin, end - begin));
    if (end == bytes.size()) return result;
    result += '\0';
    begin = end + 1;
  }
}

}  // namespace eliza
