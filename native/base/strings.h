// What C++17 has not: small questions about text. ASCII only, since the host's locale must not decide what a name is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace eliza {

// Whether an option that is text says something.
inline bool is_set(const char* text) { return text != nullptr && *text != '\0'; }

inline bool starts_with(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

inline bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

inline char ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Letters in lower case and digits, and nothing else: what two spellings of a name have in common.
std::string squashed(std::string_view name);

// With a comma between two of them.
std::string joined(const std::vector<std::string>& parts);

}  // namespace eliza
