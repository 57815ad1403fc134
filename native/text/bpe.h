// Byte-pair encoding of a part of a text, as the "BPE" model of a tokenizer.json defines it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace eliza {

class BpeModel {
 public:
  struct Options {
    std::optional<int32_t> unknown;  // for a character without a token; without it the character is dropped
    bool fuse_unknown = false;       // one for a run of such characters
    bool byte_fallback = false;      // spell such a character with the tokens <0x00> to <0xFF>, where all are there
    bool ignore_merges = false;      // a part that is a token is that token
  };

  // `vocabulary` holds views of the tokens' texts, which must outlive the model.
  BpeModel(std::unordered_map<std::string_view, int32_t> vocabulary, const Options& options);

  // Adds the merge of two tokens; the first one added comes first. Returns whether both and what they make are tokens.
  bool add_merge(const std::string& left, const std::string& right);

  std::optional<int32_t> find(std::string_view token) const;

  // Appends the ids of `part`, valid UTF-8.
  void encode(std::string_view part, std::vector<int32_t>* out) const;

 private:
  struct Merge {
    int32_t rank;
    int32_t token;
  };

  static uint64_t pair_key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }

  std::vector<int32_t> characters(std::string_view part) const;
  bool append_bytes(std::string_view character, std::vector<int32_t>* out) const;
  const Merge* merge_of(int32_t left, int32_t right) const;

  std::unordered_map<std::string_view, int32_t> vocabulary_;
  Options options_;
  std::unordered_map<uint64_t, Merge> merges_;
  int32_t next_rank_ = 0;
  std::vector<std::optional<int32_t>> byte_tokens_;  // of <0x00> to <0xFF>
};

}  // namespace eliza
