// The vocabulary of a .litertlm, through the runtime's tokenizer; and the way between token ids, which the C ABI
// speaks, and text, which is all that the runtime's sessions take and give.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "native/backends/litert_lm/engine.h"
#include "native/text/token-stream.h"
#include "native/text/tokenizer.h"

namespace eliza::litert_lm {

class LiteRtTokenizer final : public Tokenizer {
 public:
  explicit LiteRtTokenizer(std::shared_ptr<const Engine> engine) : engine_(std::move(engine)) {}

  // Without `parse_special`, what is written like a special token of the vocabulary ("<start_of_turn>") is tokenized as
  // two texts, so that it becomes none.
  std::vector<int32_t> tokenize(std::string_view text, bool add_special, bool parse_special) const override;

  // Special tokens that text can name are text like any other; only those that it cannot ("<bos>", "<pad>") are left
  // out unless `unparse_special`.
  std::string detokenize(const int32_t* tokens, size_t num_tokens, bool remove_special,
                         bool unparse_special) const override;

  // None: the runtime gives no metadata.
  std::optional<std::string> metadata(const std::string& key) const override;

 private:
  const Vocabulary& vocabulary() const { return engine_->vocabulary(); }
  bool is_control(int32_t token) const;

  std::shared_ptr<const Engine> engine_;
};

// A text that the runtime tokenizes as exactly `count` tokens of a prompt.
struct Spelling {
  std::string text;
  size_t count;
};

// The ids from `first` on as texts, each of at most `most` tokens, which the runtime reads one by one as these very
// ids. Throws Error(ELIZA_ERR_INVALID_ARG) naming the first id that no text gives: a part of a character, a control
// token.
std::vector<Spelling> spell(const Vocabulary& vocabulary, const int32_t* tokens, size_t first, size_t count,
                            size_t most);

// Appends the tokens of a piece of generated text. The runtime tells no ids, so they are those of the text; an
// unreadable token is recognised by its text, so of a byte that became no character ("\uFFFD") it is known only that it
// was one.
void append_generated(const Vocabulary& vocabulary, const std::string& text, std::vector<DecodedToken>* out);

}  // namespace eliza::litert_lm
