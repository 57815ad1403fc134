#include "native/backends/mlx/layers.h"

#include <algorithm>
#include <array>

namespace eliza::mlx {
namespace {

constexpr std::array kBits = {2, 3, 4, 5, 6, 8};
constexpr std::array kGroups = {32, 64, 128};

template <typename Values>
bool contains(const Values& values, int64_t value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

struct Quantisation {
  int bits;
  int group_size;
};

// The bits and the group size of a packed matrix: `in` values lie in so many words, and share so many scales.
Quantisation infer(const Weights& weights, const std::string& path, Axis out, Axis in) {
  const TensorInfo& packed = weights.info(path + ".weight");
  const TensorInfo& scales = weights.info(path + ".scales");
  constexpr int64_t kWordBits = 32;
  if (scales.dtype == "U8") {
    weights.fail(path + ".scales", "is of type U8, as in mxfp4, nvfp4 and mxfp8; known is affine quantisation");
  }
  const bool matrices = packed.shape.size() == 2 && scales.shape.size() == 2 && packed.shape[0] == out.size &&
                        scales.shape[0] == out.size && scales.shape[1] > 0;
  const int64_t groups = matrices ? scales.shape[1] : 1;
  const int64_t words = matrices ? packed.shape[1] : 0;
  const int64_t group = in.size / groups;
  const int64_t bits = words * kWordBits / in.size;
  const bool even = group * groups == in.size && bits * in.size == words * kWordBits;
  if (!matrices || !even || !contains(kBits, bits) || !contains(kGroups, group)) {
    weights.fail(path + ".weight", "has the shape " + shape_text(packed.shape) + " with scales of " +
                                       shape_text(scales.shape) + ", which is no packed matrix of " +
                                       shape_text({out.size, in.size}) + " (" + out.key + ", " + in.key +
                                       ") with 2, 3, 4, 5, 6 or 8 bits in groups of 32, 64 or 128");
  }
  return {static_cast<int>(bits), static_cast<int>(group)};
}

mx::array load_weight(Weights& weights, const std::string& path, Axis out, Axis in) {
  if (weights.has(path + ".scales")) return weights.take_packed(path + ".weight");
  return weights.take(path + ".weight", {out, in});
}

mx::array load_norm(Weights& weights, const std::string& path, Axis width, bool plus_one) {
  const mx::array weight = weights.take(path + ".weight", {width});
  return plus_one ? weights.keep(weight + mx::array(1.0f, weight.dtype())) : weight;
}

}  // namespace

Matrix::Matrix(Weights& weights, const std::string& path, Axis out, Axis in)
    : weight_(load_weight(weights, path, out, in)) {
  if (!weights.has(path + ".scales")) return;
  const Quantisation quantisation = infer(weights, path, out, in);
  bits_ = quantisation.bits;
  group_size_ = quantisation.group_size;
  const std::vector<int64_t> shape = weights.info(path + ".scales").shape;
  scales_ = weights.take_floats(path + ".scales", shape);
  biases_ = weights.take_floats(path + ".biases", shape);
  if (scales_->dtype() != biases_->dtype()) weights.fail(path + ".biases", "is of another type than the scales");
}

mx::array Matrix::times(const mx::array& x) const {
  if (bits_ == 0) return mx::matmul(x, mx::transpose(weight_));
  return mx::quantized_matmul(x, weight_, *scales_, *biases_, /*transpose=*/true, group_size_, bits_);
}

mx::array Matrix::rows(const mx::array& indices) const {
  const mx::array rows = mx::take(weight_, indices, 0);
  if (bits_ == 0) return rows;
  return mx::dequantize(rows, mx::take(*scales_, indices, 0), mx::take(*biases_, indices, 0), group_size_, bits_);
}

mx::Dtype Matrix::dtype() const { return scales_ ? scales_->dtype() : weight_.dtype(); }

Linear::Linear(Weights& weights, const std::string& path, Axis out, Axis in, bool bias)
    : matrix_(weights, path, out, in) {
  if (bias) bias_ = weights.take(path + ".bias", {out});
}

mx::array Linear::operator()(const mx::array& x) const {
  const mx::array y = matrix_.times(x);
  return bias_ ? y + *bias_ : y;
}

RmsNorm::RmsNorm(Weights& weights, const std::string& path, Axis width, float epsilon, bool plus_one)
    : weight_(load_norm(weights, path, width, plus_one)), epsilon_(epsilon) {}

mx::array RmsNorm::operator()(const mx::array& x) const { return mx::fast::rms_norm(x, weight_, epsilon_); }

Mlp::Mlp(Weights& weights, const std::string& path, Axis width, Axis hidden, Activation activation, bool bias)
    : gate_(weights, path + ".gate_proj", hidden, width, bias),
      up_(weights, path + ".up_proj", hidden, width, bias),
      down_(weights, path + ".down_proj", width, hidden, bias),
      activation_(activation) {}

mx::array Mlp::operator()(const mx::array& x) const {
  const mx::array gate = gate_(x);
  const mx::array active = activation_ == Activation::kGelu ? gelu(gate) : gate * mx::sigmoid(gate);
  return down_(active * up_(x));
}

mx::array scaled(const mx::array& x, double factor) {
  return x * mx::astype(mx::array(static_cast<float>(factor)), x.dtype());
}

mx::array gelu(const mx::array& x) {
  constexpr double kRootOfTwoOverPi = 0.79788456080286536;
  const mx::array cubic = x + scaled(x * x * x, 0.044715);
  const mx::array one = mx::array(1.0f, x.dtype());
  return scaled(x, 0.5) * (one + mx::tanh(scaled(cubic, kRootOfTwoOverPi)));
}

mx::array split_heads(const mx::array& x, int heads, int head) {
  return mx::transpose(mx::reshape(x, {1, x.shape(1), heads, head}), {0, 2, 1, 3});
}

mx::array merge_heads(const mx::array& x) {
  return mx::reshape(mx::transpose(x, {0, 2, 1, 3}), {1, x.shape(2), x.shape(1) * x.shape(3)});
}

}  // namespace eliza::mlx
