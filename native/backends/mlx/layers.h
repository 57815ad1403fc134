// What every architecture is built from: linear maps and embeddings, plain or quantised, norms, activations, attention.
//
// Shapes: activations are [1, L, width], heads [1, heads, L, head]. All functions build lazy MLX graphs.
#pragma once

#include <optional>
#include <string>

#include "native/backends/mlx/mlx-core.h"
#include "native/backends/mlx/weights.h"

namespace eliza::mlx {

// A matrix [out, in]: a tensor PATH.weight, or PATH.weight, .scales and .biases of MLX's affine quantisation, whose
// bits and group size follow from the shapes.
class Matrix {
 public:
  // Throws Error where the tensors do not fit each other or the config.
  Matrix(Weights& weights, const std::string& path, Axis out, Axis in);

  mx::array times(const mx::array& x) const;       // x W^T
  mx::array rows(const mx::array& indices) const;  // W[indices]
  mx::Dtype dtype() const;                         // of what it computes

  int bits() const { return bits_; }  // 0: not quantised
  int group_size() const { return group_size_; }

 private:
  mx::array weight_;
  std::optional<mx::array> scales_;
  std::optional<mx::array> biases_;
  int bits_ = 0;
  int group_size_ = 0;
};

// x W^T, plus PATH.bias where `bias` says so.
class Linear {
 public:
  Linear(Weights& weights, const std::string& path, Axis out, Axis in, bool bias = false);
  mx::array operator()(const mx::array& x) const;

 private:
  Matrix matrix_;
  std::optional<mx::array> bias_;
};

class RmsNorm {
 public:
  // `plus_one`: the tensor holds the weight less one (Gemma 3).
  RmsNorm(Weights& weights, const std::string& path, Axis width, float epsilon, bool plus_one = false);
  mx::array operator()(const mx::array& x) const;

 private:
  mx::array weight_;
  float epsilon_;
};

// The gated feed-forward layer: down(activation(gate(x)) * up(x)).
class Mlp {
 public:
  enum class Activation { kGelu, kSilu };
  Mlp(Weights& weights, const std::string& path, Axis width, Axis hidden, Activation activation, bool bias = false);
  mx::array operator()(const mx::array& x) const;

 private:
  Linear gate_;
  Linear up_;
  Linear down_;
  Activation activation_;
};

// The approximation of GELU with tanh.
mx::array gelu(const mx::array& x);

mx::array scaled(const mx::array& x, double factor);  // in the type of x

// [1, L, heads * head] → [1, heads, L, head] and back.
mx::array split_heads(const mx::array& x, int heads, int head);
mx::array merge_heads(const mx::array& x);

}  // namespace eliza::mlx
