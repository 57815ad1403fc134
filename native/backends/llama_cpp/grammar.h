// A GBNF grammar (https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md) over a model's tokens.
#pragma once

#include <memory>
#include <string>

#include "llama.h"

struct llama_grammar;

namespace eliza::llama_cpp {

// Follows one generation. Not thread-safe. A grammar that is too deep or too ambiguous to be followed is an
// Error(ELIZA_ERR_INVALID_ARG), on opening or when the text gets there.
//
// llama.cpp's own sampler of a grammar is not used: where memory runs out in its reset it goes on without the grammar.
//
// Two things that llama.cpp's grammars allow are not allowed here, since the text would not be the grammar's:
// malformed UTF-8 (any byte behind the first of a longer character passes for a part of it, a quotation mark as well),
// and control tokens (whose name, such as "<s>", the grammar reads, and which are no text).
class Grammar {
 public:
  // Throws Error(ELIZA_ERR_INVALID_ARG) with line and column where `gbnf` cannot be parsed.
  Grammar(const llama_vocab* vocab, const std::string& gbnf);

  // Back to the start of a generation.
  void restart();

  // Whether the generation may go on with this token; with an end-of-generation token: whether it may end here.
  bool allows(llama_token token);

  // The same for many: sets the logits of those that are not allowed to minus infinity.
  void restrict(llama_token_data* candidates, size_t count);

  // The generation goes on with this token, which is allowed and does not end it. Where it throws, there is no telling
  // where the grammar is, until a restart.
  void accept(llama_token token);

 private:
  struct Deleter {
    void operator()(llama_grammar* grammar) const;
  };

  bool writes_text(llama_token token) const;

  const llama_vocab* vocab_;
  const std::string gbnf_;
  std::unique_ptr<llama_grammar, Deleter> grammar_;
  std::string unfinished_;  // the bytes of a character that is not complete yet
};

}  // namespace eliza::llama_cpp
