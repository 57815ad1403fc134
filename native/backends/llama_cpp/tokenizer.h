// The vocabulary of a GGUF file.
#pragma once

#include <memory>

#include "native/backends/llama_cpp/model-cache.h"
#include "native/text/tokenizer.h"

namespace eliza::llama_cpp {

class GgufTokenizer final : public Tokenizer {
 public:
  explicit GgufTokenizer(std::shared_ptr<const Model> model) : model_(std::move(model)) {}

  std::vector<int32_t> tokenize(std::string_view input, bool add_special, bool parse_special) const override;
  std::string detokenize(const int32_t* tokens, size_t num_tokens, bool remove_special,
                         bool unparse_special) const override;
  std::optional<std::string> metadata(const std::string& key) const override;

 private:
  std::shared_ptr<const Model> model_;
};

// Throws Error(ELIZA_ERR_INVALID_ARG) naming the first id that is not in the vocabulary, and its index.
void check_tokens(const llama_vocab* vocab, const int32_t* tokens, size_t num_tokens);

// The bytes of a generated token; control tokens have none.
std::string token_piece(const llama_vocab* vocab, llama_token token);

}  // namespace eliza::llama_cpp
