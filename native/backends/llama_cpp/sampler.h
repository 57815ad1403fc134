// Picks the next token from logits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "llama.h"
#include "native/backends/llama_cpp/grammar.h"
#include "native/backends/llama_cpp/owned.h"
#include "native/text/sampling.h"

namespace eliza::llama_cpp {

// Repeat penalty, top-k, top-p, temperature, draw: llama.cpp's samplers in llama.cpp's order, with its results token
// for token. Two of them are ours, for speed: greedy decoding reads the logits once and builds no candidates, and the
// penalty touches the at most 64 tokens it is about instead of looking up each of the vocabulary.
//
// A grammar constrains every token, at the cost of one check where the token drawn without it is allowed. Where it is
// not, a second draw is made from the allowed ones; the grammar then looks at the likeliest tokens first, and at the
// whole vocabulary only if it has to. (llama.cpp's common/sampling.cpp draws the same, and always looks at all.)
class Sampler {
 public:
  // `gbnf`: empty for none. Throws Error where it cannot be parsed.
  Sampler(const llama_vocab* vocab, const SamplingSettings& settings, const std::string& gbnf = {});

  // Draws with this seed from now on, and again from its start after each restart.
  void set_seed(uint64_t seed);

  // Back to the start of the draws from a seed that was set.
  void restart();

  // A new generation: back to the start of the grammar.
  void begin_generation();

  // A step failed, and the grammar may be anywhere. `resume`, before the next one, brings it behind the `count` tokens
  // that this generation has.
  void lose_place() noexcept { lost_ = true; }
  void resume(const llama_token* generated, size_t count);

  // The token after the `size` tokens of `context`, whose last kRepeatPenaltyWindow a repeat penalty counts.
  // LLAMA_TOKEN_NULL where the grammar allows none. `logits` has one value per token of the vocabulary, and is as it
  // was afterwards.
  llama_token sample(float* logits, const llama_token* context, size_t size);

 private:
  SamplerPtr new_chain(uint32_t seed) const;
  void penalise(float* logits, const llama_token* context, size_t size);
  void forgive(float* logits);
  llama_token choose(const float* logits);
  void fill_candidates(const float* logits);
  llama_token draw(llama_token_data* candidates, size_t count);
  llama_token draw_allowed(const float* logits);

  const llama_vocab* vocab_;
  size_t vocab_size_;
  SamplingSettings settings_;
  std::optional<Grammar> grammar_;
  bool lost_ = false;
  bool seeded_ = false;
  SamplerPtr chain_;  // null when greedy

  struct Penalised {
    llama_token token;
    float logit;  // before the penalty
  };
  std::vector<Penalised> penalised_;
  std::vector<llama_token_data> candidates_;  // where draws are made from; kept for its memory
};

// What is left of a 64-bit seed for llama.cpp, which takes 32.
uint32_t fold_seed(uint64_t seed);

// The index of the largest of `logits`, the first of equals: what llama_sampler_init_greedy picks.
llama_token argmax(const float* logits, size_t size);

}  // namespace eliza::llama_cpp
