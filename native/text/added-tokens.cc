#include "native/text/added-tokens.h"

#include <algorithm>

#include "native/text/unicode-classes.h"
#include "native/text/utf8-characters.h"

namespace eliza {
namespace {

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// Where the spaces begin that end at `end`, from `begin` on.
size_t spaces_before(std::string_view text, size_t begin, size_t end) {
  for (size_t at = end; at > begin;) {
    do --at;
    while (at > begin && continues_character(text[at]));
    if (!is_space(utf8_at(text, at))) break;
    end = at;
  }
  return end;
}

size_t spaces_behind(std::string_view text, size_t begin) {
  while (begin < text.size() && is_space(utf8_at(text, begin))) begin += utf8_size(text[begin]);
  return begin;
}

}  // namespace

void AddedTokens::add(const std::string& content, const AddedToken& token) {
  if (!content.empty()) first_bytes_.set(static_cast<unsigned char>(content[0]));
  uint32_t node = 0;
  for (const char byte : content) {
    const auto [edge, is_new] =
        edges_.try_emplace(static_cast<uint64_t>(node) << 8 | static_cast<unsigned char>(byte), nodes_);
    if (is_new) ++nodes_;
    node = edge->second;
  }
  ends_.try_emplace(node, token);
}

AddedTokens::Match AddedTokens::longest_at(std::string_view text, size_t at) const {
  Match match;
  uint32_t node = 0;
  for (size_t i = at; i < text.size(); ++i) {
    const auto edge = edges_.find(static_cast<uint64_t>(node) << 8 | static_cast<unsigned char>(text[i]));
    if (edge == edges_.end()) break;
    node = edge->second;
    const auto end = ends_.find(node);
    if (end != ends_.end()) match = {i + 1 - at, &end->second};
  }
  return match;
}

std::vector<AddedTokens::Part> AddedTokens::split(std::string_view text, bool parse_special) const {
  std::vector<Part> parts;
  size_t begin = 0;  // of what is not yet in a part
  const auto add_text = [&](size_t end) {
    if (end > begin) parts.push_back({text.substr(begin, end - begin), -1});
  };
  for (size_t at = 0; at < text.size();) {
    const Match match = first_bytes_[static_cast<unsigned char>(text[at])] ? longest_at(text, at) : Match();
    if (match.token == nullptr) {
      ++at;
      continue;
    }
    const size_t end_of_match = at + match.size;
    if (parse_special || !match.token->special) {
      add_text(match.token->left_strip ? spaces_before(text, begin, at) : at);
      const size_t end = match.token->right_strip ? spaces_behind(text, end_of_match) : end_of_match;
      parts.push_back({text.substr(at, match.size), match.token->id});
      begin = end;
    }
    at = std::max(end_of_match, begin);
  }
  add_text(text.size());
  return parts;
}

}  // namespace eliza
