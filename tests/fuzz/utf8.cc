// The UTF-8 gate: whole characters only, the same however the bytes are cut into pieces.
#include <string>

#include "native/text/utf8-gate.h"
#include "tests/fuzz/input.h"

namespace {

// Written anew, by counting: a NUL or a malformed sequence is false.
bool is_text(const std::string& text) {
  for (size_t i = 0; i < text.size();) {
    const auto byte = [&](size_t k) { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0u; };
    const unsigned first = byte(i);
    const size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    unsigned point = length == 1 ? first : first & (0xFFu >> (length + 1));
    for (size_t k = 1; k < length; ++k) {
      if ((byte(i + k) & 0xC0u) != 0x80) return false;
      point = point << 6 | (byte(i + k) & 0x3Fu);
    }
    const unsigned least[] = {0, 1, 0x80, 0x800, 0x10000};
    if ((first >= 0x80 && first < 0xC2) || first > 0xF4 || point < least[length] || point > 0x10FFFF) return false;
    if (point >= 0xD800 && point < 0xE000) return false;
    i += length;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using eliza::fuzz::require;
  eliza::fuzz::Input input(data, size);
  const size_t piece = 1 + input.below(16);
  const std::string bytes(input.rest());
  const std::string whole = eliza::to_valid_utf8(bytes);
  require(is_text(whole), "the gate lets text through");
  if (is_text(bytes)) require(whole == bytes, "text stays as it is");

  eliza::Utf8Gate gate;
  std::string pieces;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    const size_t before = pieces.size();
    gate.push(std::string_view(bytes).substr(at, piece), &pieces);
    require(gate.held() <= 3, "at most three bytes are held back");
    require(is_text(pieces.substr(before)), "each piece is whole characters");
  }
  gate.finish(&pieces);
  require(pieces == whole, "cuts make no difference");
  return 0;
}
