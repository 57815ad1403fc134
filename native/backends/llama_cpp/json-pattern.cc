#include "native/backends/llama_cpp/json-pattern.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <utility>
#include <vector>

namespace eliza::llama_cpp {
namespace {

constexpr size_t kMostBytes = 4096;
constexpr int kMostGroups = 40;         // within each other; the converter takes 100, and there are two for each
constexpr int kMostRepetitions = 2000;  // of a grammar
constexpr uint32_t kLast = 0x10FFFF;    // of Unicode
constexpr uint32_t kUnbounded = UINT32_MAX;

using Range = std::pair<uint32_t, uint32_t>;  // both inclusive
using Ranges = std::vector<Range>;

Ranges sorted(Ranges ranges) {
  std::sort(ranges.begin(), ranges.end());
  Ranges merged;
  for (const Range& range : ranges) {
    if (!merged.empty() && range.first <= merged.back().second + 1) {
      merged.back().second = std::max(merged.back().second, range.second);
    } else {
      merged.push_back(range);
    }
  }
  return merged;
}

Ranges complement(const Ranges& ranges) {
  Ranges result;
  uint32_t next = 0;
  for (const Range& range : sorted(ranges)) {
    if (range.first > next) result.emplace_back(next, range.first - 1);
    next = range.second + 1;
  }
  if (next <= kLast) result.emplace_back(next, kLast);
  return result;
}

bool contains(const Ranges& ranges, uint32_t character) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [character](const Range& range) { return range.first <= character && character <= range.second; });
}

bool is_one_of(char c, std::string_view characters) { return characters.find(c) != std::string_view::npos; }

// What JSON text writes with a backslash and one more character.
struct Escape {
  uint32_t character;
  char letter;
};
constexpr std::array<Escape, 7> kEscapes = {
    {{'"', '"'}, {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'}, {'\n', 'n'}, {'\r', 'r'}, {'\t', 't'}}};

std::string hex(uint32_t character) {
  char text[16];
  const char* format = character <= 0xFF ? "\\x%02X" : character <= 0xFFFF ? "\\u%04X" : "\\U%08X";
  std::snprintf(text, sizeof text, format, static_cast<unsigned>(character));
  return text;
}

std::string one_of(const Ranges& ranges) {
  std::string text = "[";
  for (const Range& range : ranges) {
    text += hex(range.first);
    if (range.second > range.first) text += "-" + hex(range.second);
  }
  return text + "]";
}

// The JSON text of any of these characters.
std::string json_text(const Ranges& ranges) {
  // Written as they are: all but control characters, quotation mark, backslash, and halves of surrogate pairs, which
  // are no characters.
  Ranges others = {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}, {0xD800, 0xDFFF}};
  const Ranges excluded = complement(ranges);
  others.insert(others.end(), excluded.begin(), excluded.end());
  const Ranges plain = complement(others);
  std::vector<std::string> alternatives;
  if (!plain.empty()) alternatives.push_back(one_of(plain));
  for (const Escape& escape : kEscapes) {
    if (!contains(ranges, escape.character)) continue;
    alternatives.push_back(
        "[\\x5C]" + one_of({{static_cast<unsigned char>(escape.letter), static_cast<unsigned char>(escape.letter)}}));
  }
  if (alternatives.empty()) throw std::runtime_error("it asks for a character that JSON text cannot hold here");
  if (alternatives.size() == 1 && !plain.empty()) return alternatives.front();
  std::string text = "(?:";
  for (size_t i = 0; i < alternatives.size(); ++i) text += (i > 0 ? "|" : "") + alternatives[i];
  return text + ")";
}

// Recursive descent.
class Parser {
 public:
  explicit Parser(std::string_view pattern) : pattern_(pattern) {}

  std::string run() {
    std::string result = "^(?:" + top_level_alternative();
    while (take('|')) result += "|" + top_level_alternative();
    if (!at_end()) fail("a ')' that closes nothing");
    return result + ")$";
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(what + ", at offset " + std::to_string(at_));
  }
  bool at_end() const { return at_ == pattern_.size(); }
  char peek() const { return at_end() ? '\0' : pattern_[at_]; }
  bool take(std::string_view text) {
    if (pattern_.substr(at_, text.size()) != text) return false;
    at_ += text.size();
    return true;
  }
  bool take(char c) { return take(std::string_view(&c, 1)); }

  // A pattern matches anywhere in a string, unless it says where.
  std::string top_level_alternative() {
    const std::string anything = json_text({{0, kLast}}) + "*";
    std::string text = take('^') ? "" : anything;
    text += sequence();
    text += take('$') ? "" : anything;
    if (!at_end() && peek() != '|' && peek() != ')') fail("an anchor inside of the pattern is not supported");
    return text;
  }

  std::string sequence() {
    std::string text;
    while (!at_end() && peek() != '|' && peek() != ')' && peek() != '$') text += quantified(atom());
    return text;
  }

  std::string quantified(const std::string& text) {
    uint32_t least = 1;
    uint32_t most = 1;
    if (take('*')) {
      least = 0, most = kUnbounded;
    } else if (take('+')) {
      most = kUnbounded;
    } else if (take('?')) {
      least = 0;
    } else if (take('{')) {
      least = number();
      most = least;
      if (take(',')) most = peek() == '}' ? kUnbounded : number();
      if (!take('}')) fail("a '}' is missing");
      if (most < least)
        fail("a repetition of at least " + std::to_string(least) + " and at most " + std::to_string(most));
    } else {
      return text;
    }
    take('?');  // reluctant: the same strings
    return "(?:" + text + ")" + quantifier(least, most);
  }

  static std::string quantifier(uint32_t least, uint32_t most) {
    if (most == kUnbounded && least <= 1) return least == 0 ? "*" : "+";
    if (least == 0 && most == 1) return "?";
    return "{" + std::to_string(least) + "," + (most == kUnbounded ? "" : std::to_string(most)) + "}";
  }

  uint32_t number() {
    if (peek() < '0' || peek() > '9') fail("a number is missing");
    uint32_t value = 0;
    while (peek() >= '0' && peek() <= '9') {
      value = value * 10 + static_cast<uint32_t>(pattern_[at_++] - '0');
      if (value > kMostRepetitions) fail("more than " + std::to_string(kMostRepetitions) + " repetitions");
    }
    return value;
  }

  std::string atom() {
    if (take('(')) return group();
    if (take('[')) return json_text(character_class());
    if (take('.')) return json_text(complement({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}));
    if (peek() == '\\') return json_text(escape(/*in_class=*/false, /*excluded=*/false));
    if (peek() == '^') fail("an anchor inside of the pattern is not supported");
    if (is_one_of(peek(), "*+?{")) fail("there is nothing to repeat");
    if (is_one_of(peek(), "]}")) fail(std::string("a '") + peek() + "' that closes nothing");
    const uint32_t c = character();
    return json_text({{c, c}});
  }

  std::string group() {
    if (++depth_ > kMostGroups) fail("groups are nested deeper than " + std::to_string(kMostGroups));
    if (take('?') && !take(':')) {
      // A name is for who reads the match.
      if (!take('<') || peek() == '=' || peek() == '!') fail("lookaround and flags are not supported");
      while (!at_end() && peek() != '>') ++at_;
      if (!take('>')) fail("the name of a group does not end");
    }
    std::string text = "(?:" + sequence();
    while (take('|')) text += "|" + sequence();
    if (peek() == '$') fail("an anchor inside of the pattern is not supported");
    if (!take(')')) fail("a ')' is missing");
    --depth_;
    return text + ")";
  }

  Ranges character_class() {
    const bool negated = take('^');
    Ranges ranges;
    while (!take(']')) {
      if (at_end()) fail("a ']' is missing");
      const Ranges first = class_atom(negated);
      ranges.insert(ranges.end(), first.begin(), first.end());
      if (peek() != '-' || pattern_.substr(at_, 2) == "-]" || at_ + 1 >= pattern_.size()) continue;
      ++at_;
      const Ranges last = class_atom(negated);
      const auto is_character = [](const Ranges& set) { return set.size() == 1 && set[0].first == set[0].second; };
      if (!is_character(first) || !is_character(last)) fail("a range from or to a class of characters");
      if (last[0].first < first[0].first) fail("a range that ends before it begins");
      ranges.emplace_back(first[0].first, last[0].first);
    }
    return negated ? complement(ranges) : sorted(std::move(ranges));
  }

  Ranges class_atom(bool excluded) {
    if (peek() == '\\') return escape(/*in_class=*/true, excluded);
    const uint32_t c = character();
    return {{c, c}};
  }

  // One character of the pattern, which is UTF-8 (the JSON parser has checked that).
  uint32_t character() {
    if (at_end()) fail("the pattern ends too early");
    const unsigned char lead = static_cast<unsigned char>(pattern_[at_++]);
    const int more = lead < 0x80 ? 0 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
    uint32_t value = more == 0 ? lead : lead & (0x3Fu >> more);
    for (int i = 0; i < more && !at_end(); ++i) {
      value = value << 6 | (static_cast<unsigned char>(pattern_[at_++]) & 0x3Fu);
    }
    return value;
  }

  // The characters that an escape stands for.
  Ranges escape(bool in_class, bool excluded) {
    ++at_;  // the backslash
    if (at_end()) fail("a backslash at the end");
    const char c = peek();
    const Ranges named = class_escape(c, excluded);
    if (!named.empty()) {
      ++at_;
      return named;
    }
    if (in_class && take('b')) return {{'\b', '\b'}};
    const uint32_t value = character_escape();
    return {{value, value}};
  }

  // White space, about which readers of patterns do not agree: as few as they all count, or as many as any.
  static Ranges spaces(bool many) {
    if (!many) return {{'\t', '\r'}, {' ', ' '}};
    return {{'\t', '\r'},     {' ', ' '},       {0x1C, 0x1F},     {0x85, 0x85},     {0xA0, 0xA0},     {0x1680, 0x1680},
            {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
  }

  // `excluded`: in a negated class, of which the result is the complement.
  static Ranges class_escape(char c, bool excluded) {
    const Ranges digits = {{'0', '9'}};
    const Ranges word = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    switch (c) {
      case 'd':
        return digits;
      case 'D':
        return complement(digits);
      case 'w':
        return word;
      case 'W':
        return complement(word);
      case 's':
        return spaces(excluded);
      case 'S':
        return complement(spaces(!excluded));
      default:
        return {};
    }
  }

  uint32_t character_escape() {
    constexpr std::string_view kLetters = "tnvfr";
    constexpr std::string_view kMeanings = "\t\n\v\f\r";
    if (is_one_of(peek(), kLetters)) return static_cast<unsigned char>(kMeanings[kLetters.find(pattern_[at_++])]);
    if (take('x')) return digits_of(2);
    if (take("u{")) {
      uint32_t value = 0;
      while (!take('}')) {
        value = value * 16 + digits_of(1);
        if (value > kLast) fail("a character beyond Unicode");
      }
      return value;
    }
    if (take('u')) {
      const uint32_t high = digits_of(4);
      if (high < 0xD800 || high > 0xDBFF || !take("\\u")) return high;
      const uint32_t low = digits_of(4);
      if (low < 0xDC00 || low > 0xDFFF) fail("half of a surrogate pair");
      return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    }
    if (peek() == '0' && (at_ + 1 >= pattern_.size() || pattern_[at_ + 1] < '0' || pattern_[at_ + 1] > '9')) {
      ++at_;
      return 0;
    }
    // A sign stands for itself; a letter or a digit means something.
    const char c = peek();
    const bool sign = is_one_of(c, "^$\\.*+?()[]{}|/-\"'#&!%,:;<=>@`~ _");
    if (!sign)
      fail(std::string("the escape \\") + (c >= ' ' && c < 0x7F ? std::string(1, c) : "") + " is not supported");
    return character();
  }

  uint32_t digits_of(int count) {
    uint32_t value = 0;
    for (int i = 0; i < count; ++i) {
      const char c = peek();
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) fail("a hexadecimal digit is missing");
      value = value * 16 + static_cast<uint32_t>(digit);
      ++at_;
    }
    return value;
  }

  const std::string_view pattern_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::string json_pattern(std::string_view pattern) {
  if (pattern.size() > kMostBytes) {
    throw std::runtime_error("it has more than " + std::to_string(kMostBytes) + " bytes");
  }
  return Parser(pattern).run();
}

}  // namespace eliza::llama_cpp
