// Picks the next token from logits, on the device: the logits of a step never leave it.
//
// Repeat penalty, top-k, top-p, temperature, draw: the order and the meaning of llama.cpp's samplers. The draws are
// MLX's, so that a seed repeats here, and is another sequence than in llama.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "native/backends/mlx/mlx-core.h"
#include "native/text/sampling.h"

namespace eliza::mlx {

class Sampler {
 public:
  explicit Sampler(const SamplingSettings& settings);

  // Draws with this seed from now on.
  void set_seed(uint64_t seed);

  // The start of a sequence of draws: the given seed, or else a new one.
  void restart();

  bool penalises() const { return settings_.repeat_penalty != 1.0f; }

  // The token [1], int32, for logits [vocabulary]. `draw` numbers the draws since the start: equal ones give equal
  // tokens. `recent`, int32, are the tokens that a repeat penalty is about.
  mx::array sample(const mx::array& logits, uint64_t draw, const std::optional<mx::array>& recent) const;

 private:
  mx::array penalised(const mx::array& logits, const mx::array& recent) const;
  mx::array drawn(const mx::array& logits, uint64_t draw) const;

  SamplingSettings settings_;
  bool seeded_ = false;
  uint64_t seed_ = 0;
};

}  // namespace eliza::mlx
