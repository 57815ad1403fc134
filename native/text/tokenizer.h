// The vocabulary of a text model, whatever runtime reads it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eliza {

// Immutable, so usable from any thread. Functions throw eliza::Error.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Token ids of `text`, which may hold NULs and malformed UTF-8. `add_special` adds what the model expects at the
  // start and the end (BOS, EOS); `parse_special` turns the text of special tokens into those tokens.
  virtual std::vector<int32_t> tokenize(std::string_view text, bool add_special, bool parse_special) const = 0;

  // The bytes of the ids; an id outside the vocabulary is an error. `remove_special` leaves out what `add_special`
  // adds; with `unparse_special` special tokens appear as their text.
  virtual std::string detokenize(const int32_t* tokens, size_t num_tokens, bool remove_special,
                                 bool unparse_special) const = 0;

  // A value of the model's metadata as text, for example "tokenizer.chat_template"; nullopt for an unknown key.
  virtual std::optional<std::string> metadata(const std::string& key) const = 0;
};

}  // namespace eliza
