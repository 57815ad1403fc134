// The vocabulary of a loaded model, through the runtime's tokenizer: it takes and gives C strings, adds nothing, and
// tells nothing about itself, so what is known of it is found out by trying.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "native/backends/litert_lm/litert-lm-api.h"

namespace eliza::litert_lm {

// Usable from any thread, for as long as the runtime's engine. Functions throw Error.
class Vocabulary {
 public:
  Vocabulary(const Api& api, LiteRtLmEngine* engine);

  std::vector<int32_t> tokenize(const std::string& text) const;
  std::string text(const int32_t* tokens, size_t count) const;

  int32_t size() const { return size_; }

  // What the runtime puts at the start of each context; empty for nothing.
  const std::vector<int32_t>& start() const { return start_; }

  // A token whose text is not tokenized as one token: a control token ("<pad>"), the unknown one (" ⁇ "), a byte that
  // is no character ("\uFFFD": one stands for all of them) and the NUL (""). Of those at the vocabulary's beginning,
  // where they are.
  struct Unreadable {
    std::string text;
    int32_t id;
  };
  const std::vector<Unreadable>& unreadable() const { return unreadable_; }

 private:
  bool holds(int32_t id) const;
  void find_size();
  void find_start();
  void find_unreadable();

  const Api& api_;
  LiteRtLmEngine* const engine_;
  int32_t size_ = 0;
  std::vector<int32_t> start_;
  std::vector<Unreadable> unreadable_;
};

}  // namespace eliza::litert_lm
