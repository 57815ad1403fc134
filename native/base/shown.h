// Names out of files, fit for a message: a stranger may have given them any length, and what a terminal acts on.
#pragma once

#include <string>
#include <string_view>

namespace eliza {

// The start of a name, with question marks for control characters. (That a message is UTF-8 is seen to where it leaves
// the library.)
inline std::string shown(std::string_view name) {
  constexpr size_t kMost = 80;
  std::string text(name.substr(0, kMost));
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return name.size() > kMost ? text + "..." : text;
}

}  // namespace eliza
