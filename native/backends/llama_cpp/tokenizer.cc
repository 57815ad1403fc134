#include "native/backends/llama_cpp/tokenizer.h"

#include <limits>

#include "native/backends/llama_cpp/runtime.h"
#include "native/base/error.h"
#include "native/text/token-ids.h"
#include "native/text/utf8-gate.h"

namespace eliza::llama_cpp {
namespace {

constexpr size_t kMostInput = std::numeric_limits<int32_t>::max() / 8;  // llama.cpp counts in int32_t

void check_size(const char* what, size_t size) {
  if (size <= kMostInput) return;
  throw Error(ELIZA_ERR_INVALID_ARG, "the input has " + std::to_string(size) + " " + what + "; at most " +
                                         std::to_string(kMostInput) + " fit into one call: split it");
}

}  // namespace

std::vector<int32_t> GgufTokenizer::tokenize(std::string_view input, bool add_special, bool parse_special) const {
  check_size("bytes", input.size());
  // llama.cpp throws on some malformed bytes, for byte-level vocabularies, and takes others for characters.
  const std::string text = to_valid_utf8_with_nuls(input);
  const CallScope scope;
  // Every token stands for a byte at least, but for those that are added at the ends: nearly always enough.
  std::vector<int32_t> tokens(text.size() + 8);
  for (;;) {
    const int32_t count = llama_tokenize(model_->vocab(), text.data(), static_cast<int32_t>(text.size()), tokens.data(),
                                         static_cast<int32_t>(tokens.size()), add_special, parse_special);
    if (count >= 0) {
      tokens.resize(static_cast<size_t>(count));
      return tokens;
    }
    if (count == std::numeric_limits<int32_t>::min()) {
      throw Error(ELIZA_ERR_INVALID_ARG, "the text has more tokens than can be counted: split it");
    }
    tokens.resize(static_cast<size_t>(-static_cast<int64_t>(count)));
  }
}

std::string GgufTokenizer::detokenize(const int32_t* tokens, size_t num_tokens, bool remove_special,
                                      bool unparse_special) const {
  check_size("tokens", num_tokens);
  check_tokens(model_->vocab(), tokens, num_tokens);
  const CallScope scope;
  std::string text(num_tokens * 8 + 8, '\0');
  for (;;) {
    const int32_t size = llama_detokenize(model_->vocab(), tokens, static_cast<int32_t>(num_tokens), text.data(),
                                          static_cast<int32_t>(text.size()), remove_special, unparse_special);
    if (size >= 0) {
      text.resize(static_cast<size_t>(size));
      return text;
    }
    text.resize(static_cast<size_t>(-static_cast<int64_t>(size)));
  }
}

std::optional<std::string> GgufTokenizer::metadata(const std::string& key) const {
  const int32_t size = llama_model_meta_val_str(model_->get(), key.c_str(), nullptr, 0);
  if (size < 0) return std::nullopt;
  std::string value(static_cast<size_t>(size) + 1, '\0');  // room for the NUL that it writes
  llama_model_meta_val_str(model_->get(), key.c_str(), value.data(), value.size());
  value.resize(static_cast<size_t>(size));
  return value;
}

void check_tokens(const llama_vocab* vocab, const int32_t* tokens, size_t num_tokens) {
  check_token_ids(tokens, num_tokens, llama_vocab_n_tokens(vocab));
}

std::string token_piece(const llama_vocab* vocab, llama_token token) {
  std::string piece(15, '\0');  // what a std::string holds without an allocation; most pieces are shorter
  int32_t size = llama_token_to_piece(vocab, token, piece.data(), static_cast<int32_t>(piece.size()), 0, false);
  if (size < 0) {
    piece.resize(static_cast<size_t>(-size));
    size = llama_token_to_piece(vocab, token, piece.data(), static_cast<int32_t>(piece.size()), 0, false);
  }
  piece.resize(static_cast<size_t>(size < 0 ? 0 : size));
  return piece;
}

}  // namespace eliza::llama_cpp
