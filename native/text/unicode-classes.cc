#include "native/text/unicode-classes.h"

#include <algorithm>
#include <iterator>

namespace eliza {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

#include "native/text/unicode-classes.inc"

template <size_t kSize>
bool is_in(const Range (&ranges)[kSize], char32_t character) {
  const Range* range =
      std::lower_bound(std::begin(ranges), std::end(ranges), character,
                       [](const Range& candidate, char32_t wanted) { return candidate.last < wanted; });
  return range != std::end(ranges) && range->first <= character;
}

}  // namespace

bool is_letter(char32_t character) {
  if (character < 0x80) return (character | 0x20) >= 'a' && (character | 0x20) <= 'z';
  return is_in(kLetters, character);
}

bool is_number(char32_t character) {
  if (character < 0x80) return character >= '0' && character <= '9';
  return is_in(kNumbers, character);
}

bool is_numeric(char32_t character) { return is_number(character) || is_in(kNewerNumbers, character); }

bool is_space(char32_t character) {
  return (character >= 0x09 && character <= 0x0D) || character == 0x20 || character == 0x85 || character == 0xA0 ||
         character == 0x1680 || (character >= 0x2000 && character <= 0x200A) || character == 0x2028 ||
         character == 0x2029 || character == 0x202F || character == 0x205F || character == 0x3000;
}

}  // namespace eliza
