// Rotary position embeddings, with the ways to stretch them that the supported models use.
#pragma once

#include <optional>
#include <vector>

#include "native/backends/mlx/config.h"
#include "native/backends/mlx/mlx-core.h"

namespace eliza::mlx {

class Rope {
 public:
  // `head`: values of a head, an even number. `scaling`: an object with "rope_type" (or "type") default, linear, llama3
  // or proportional and its parameters; another type is an Error that lists them.
  Rope(int head, double base, bool traditional, const std::optional<Config>& scaling);

  // The same with proportional scaling, of which `part` of a head is rotated.
  Rope(int head, double base, bool traditional, double part);

  // Rotates [1, heads, L, head], whose first position is `offset`.
  mx::array operator()(const mx::array& x, int offset) const;

 private:
  void set_frequencies(const std::vector<float>& frequencies);

  int head_;
  bool traditional_;
  std::optional<float> base_;  // unset: frequencies_ are
  float scale_ = 1.0f;
  std::optional<mx::array> frequencies_;  // wavelengths over 2 pi, one for each pair; infinite: not rotated
};

}  // namespace eliza::mlx
