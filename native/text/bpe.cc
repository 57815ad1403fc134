#include "native/text/bpe.h"

#include <cstdio>
#include <queue>

#include "native/text/utf8-characters.h"

namespace eliza {

BpeModel::BpeModel(std::unordered_map<std::string_view, int32_t> vocabulary, const Options& options)
    : vocabulary_(std::move(vocabulary)), options_(options), byte_tokens_(256) {
  for (unsigned byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", byte);
    byte_tokens_[byte] = find(text);
  }
}

bool BpeModel::add_merge(const std::string& left, const std::string& right) {
  const std::optional<int32_t> left_token = find(left);
  const std::optional<int32_t> right_token = find(right);
  const std::optional<int32_t> token = find(left + right);
  if (!left_token || !right_token || !token) return false;
  merges_[pair_key(*left_token, *right_token)] = {next_rank_++, *token};
  return true;
}

std::optional<int32_t> BpeModel::find(std::string_view token) const {
  const auto found = vocabulary_.find(token);
  return found == vocabulary_.end() ? std::nullopt : std::optional<int32_t>(found->second);
}

const BpeModel::Merge* BpeModel::merge_of(int32_t left, int32_t right) const {
  const auto found = merges_.find(pair_key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

bool BpeModel::append_bytes(std::string_view character, std::vector<int32_t>* out) const {
  for (const char byte : character) {
    if (!byte_tokens_[static_cast<unsigned char>(byte)]) return false;
  }
  for (const char byte : character) out->push_back(*byte_tokens_[static_cast<unsigned char>(byte)]);
  return true;
}

// A token for each character. One for unknown characters comes only before the next known character: the `tokenizers`
// package, whose ids these are, does not put it before the bytes of a fallback either.
std::vector<int32_t> BpeModel::characters(std::string_view part) const {
  std::vector<int32_t> tokens;
  bool unknown_waits = false;
  for (size_t at = 0; at < part.size();) {
    const std::string_view character = part.substr(at, utf8_size(part[at]));
    at += character.size();
    if (const std::optional<int32_t> token = find(character)) {
      if (unknown_waits) tokens.push_back(*options_.unknown);
      unknown_waits = false;
      tokens.push_back(*token);
    } else if (options_.byte_fallback && append_bytes(character, &tokens)) {
      continue;
    } else if (options_.unknown) {
      if (unknown_waits && !options_.fuse_unknown) tokens.push_back(*options_.unknown);
      unknown_waits = true;
    }
  }
  if (unknown_waits) tokens.push_back(*options_.unknown);
  return tokens;
}

void BpeModel::encode(std::string_view part, std::vector<int32_t>* out) const {
  if (options_.ignore_merges) {
    if (const std::optional<int32_t> token = find(part)) {
      out->push_back(*token);
      return;
    }
  }

  struct Symbol {
    int32_t token;  // -1: merged into the one on its left
    size_t previous;
    size_t next;
  };
  constexpr size_t kNone = static_cast<size_t>(-1);
  std::vector<Symbol> symbols;
  for (const int32_t token : characters(part)) symbols.push_back({token, symbols.size() - 1, symbols.size() + 1});
  if (symbols.empty()) return;
  symbols.back().next = kNone;

  struct Candidate {
    Merge merge;
    size_t left;
    // The queue's top is its greatest.
    bool operator<(const Candidate& other) const {
      return merge.rank != other.merge.rank ? merge.rank > other.merge.rank : left > other.left;
    }
  };
  std::priority_queue<Candidate> queue;
  const auto consider = [&](size_t left) {
    if (left == kNone || symbols[left].next == kNone) return;
    const Merge* merge = merge_of(symbols[left].token, symbols[symbols[left].next].token);
    if (merge != nullptr) queue.push({*merge, left});
  };
  for (size_t i = 0; i < symbols.size(); ++i) consider(i);

  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = symbols[best.left];
    if (left.token < 0 || left.next == kNone) continue;
    Symbol& right = symbols[left.next];
    // One of the two may have become another token since.
    const Merge* merge = merge_of(left.token, right.token);
    if (merge == nullptr || merge->token != best.merge.token) continue;
    left.token = merge->token;
    left.next = right.next;
    right.token = -1;
    if (left.next != kNone) symbols[left.next].previous = best.left;
    consider(left.previous);
    consider(best.left);
  }
  for (size_t i = 0; i != kNone; i = symbols[i].next) out->push_back(symbols[i].token);
}

}  // namespace eliza
