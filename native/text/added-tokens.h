// The tokens that a tokenizer.json adds to its model's: found in the text before anything else happens to it.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace eliza {

struct AddedToken {
  std::string content;
  int32_t id;
  bool special;     // stands for a role or an end, not for text
  bool left_strip;  // takes the spaces on its left along
  bool right_strip;
};

// Texts to be found; of those that begin at the same place, the longest.
class AddedTokens {
 public:
  // `content` is what to look for, which may differ from the token's own.
  void add(const std::string& content, const AddedToken& token);

  struct Part {
    std::string_view text;
    int32_t token;  // -1: text to be tokenized
  };

  // `text` cut at the tokens in it, without empty parts; special tokens stay text where `parse_special` is false.
  std::vector<Part> split(std::string_view text, bool parse_special) const;

 private:
  struct Match {
    size_t size = 0;
    const AddedToken* token = nullptr;
  };

  Match longest_at(std::string_view text, size_t at) const;

  // A trie over bytes: nodes are numbers, 0 the root.
  std::unordered_map<uint64_t, uint32_t> edges_;  // by node << 8 | byte
  std::unordered_map<uint32_t, AddedToken> ends_;
  uint32_t nodes_ = 1;
  std::bitset<256> first_bytes_;  // most bytes of a text begin none
};

}  // namespace eliza
