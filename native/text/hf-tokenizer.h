// The vocabulary of a Hugging Face model directory: its tokenizer.json.
//
// Supported is what the models use whose weights come with one and that a backend here runs: models of type "BPE" with
// the normalizers and pre-tokenizers of text-splitter.h, decoded as byte-level (GPT-2, Llama 3, SmolLM2) or as
// SentencePiece pieces (Gemma, Llama 2). The ids are those of the `tokenizers` package. Anything else is an error that
// names it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "native/text/added-tokens.h"
#include "native/text/bpe.h"
#include "native/text/text-splitter.h"
#include "native/text/tokenizer.h"

namespace eliza {

class JsonField;
struct HfTokenizerFile;

class HfTokenizer final : public Tokenizer {
 public:
  // Reads `directory`/tokenizer.json, and beside it tokenizer_config.json and chat_template.jinja where they are.
  // `keys` become metadata as well. Throws Error(ELIZA_ERR_BUNDLE_INVALID) naming the file, the place and what is
  // supported.
  static std::shared_ptr<const HfTokenizer> load(const std::string& directory,
                                                 std::map<std::string, std::string> keys = {});

  std::vector<int32_t> tokenize(std::string_view input, bool add_special, bool parse_special) const override;
  std::string detokenize(const int32_t* tokens, size_t num_tokens, bool remove_special,
                         bool unparse_special) const override;

  // "tokenizer.chat_template", "tokenizer.ggml.bos_token_id" (and eos, unknown, padding), as in a GGUF file, and
  // `keys`.
  std::optional<std::string> metadata(const std::string& key) const override;

  // The bytes of a generated token, perhaps a part of a character: what goes through a TokenStream. Special tokens have
  // none, nor have ids that no token has: the rows of a model's matrix may outnumber them.
  std::string_view piece(int32_t token) const;

  int32_t size() const { return static_cast<int32_t>(tokens_.size()); }  // ids are below it

  std::optional<int32_t> find(std::string_view token) const;  // by its text in the file: "<end_of_turn>"

 private:
  struct Token {
    std::string text;  // in the file
    std::string bytes;
    bool exists = false;
    bool special = false;
  };

  HfTokenizer() = default;

  void read_vocabulary(const JsonField& root, const HfTokenizerFile& file);
  void read_added_tokens(const JsonField& root);
  void read_model(const JsonField& root, const HfTokenizerFile& file);
  void read_decoder(const JsonField& root);
  void read_post_processor(const JsonField& field);
  void read_template(const JsonField& field);
  void read_config(const std::string& directory);
  void read_ends(const JsonField& config);
  void spell_tokens();
  int32_t place(const JsonField& field, const std::string& text, uint64_t id);
  void check_tokens(const int32_t* tokens, size_t num_tokens) const;

  std::vector<Token> tokens_;  // by id
  std::map<std::string, int32_t, std::less<>> added_;
  AddedTokens raw_added_;         // found in the text as it is
  AddedTokens normalized_added_;  // found in the normalized text
  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  std::unique_ptr<BpeModel> model_;
  bool byte_level_ = false;
  bool byte_fallback_ = false;    // <0x00> to <0xFF> are bytes
  std::string space_ = "\u2581";  // what stands for a space in a SentencePiece vocabulary
  size_t strip_ = 0;              // spaces at the start of a text that tokenize put there
  std::vector<int32_t> prefix_;   // what add_special adds: BOS
  std::vector<int32_t> suffix_;   // and EOS
  std::map<std::string, std::string> metadata_;
};

}  // namespace eliza
