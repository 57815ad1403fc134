#include "native/text/quote.h"

#include "native/text/utf8-gate.h"

namespace eliza {

std::string shown(std::string_view bytes, size_t most) {
  constexpr char kHex[] = "0123456789abcdef";
  const bool cut = bytes.size() > most;
  if (cut) {
    while (most > 0 && (bytes[most] & 0xC0) == 0x80) --most;  // not inside a character
    bytes = bytes.substr(0, most);
  }
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    auto byte = static_cast<unsigned char>(bytes[i]);
    // U+0080 to U+009F are control characters, too.
    const bool is_c1 = byte == 0xC2 && i + 1 < bytes.size() && static_cast<unsigned char>(bytes[i + 1]) < 0xA0;
    if (is_c1) byte = static_cast<unsigned char>(bytes[++i]);
    if (is_c1 || byte < 0x20 || byte == 0x7F) {
      text += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      text += bytes[i];
    }
  }
  return to_valid_utf8(text) + (cut ? "…" : "");
}

std::string in_quotes(std::string_view bytes, size_t most) { return '"' + shown(bytes, most) + '"'; }

std::string list_in_quotes(const std::vector<std::string>& names) {
  constexpr size_t kMaxNames = 8;
  std::string list;
  for (size_t i = 0; i < names.size() && i < kMaxNames; ++i) list += (i == 0 ? "" : ", ") + in_quotes(names[i]);
  if (names.size() > kMaxNames) list += " and " + std::to_string(names.size() - kMaxNames) + " more";
  return list;
}

}  // namespace eliza
