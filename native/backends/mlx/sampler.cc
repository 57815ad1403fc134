#include "native/backends/mlx/sampler.h"

#include <algorithm>
#include <limits>
#include <random>

namespace eliza::mlx {
namespace {

uint64_t random_seed() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32) | device();
}

// splitmix64: neighbouring seeds and draws have nothing to do with each other.
uint64_t mix(uint64_t seed, uint64_t draw) {
  uint64_t value = seed + (draw + 1) * 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

mx::array first(const mx::array& values, int count) { return mx::slice(values, {0}, {count}); }

// Logits in falling order, without those that top_p leaves out: the likeliest ones whose probabilities first reach it
// stay.
mx::array keep_top_p(const mx::array& falling, float top_p) {
  const mx::array probabilities = mx::softmax(falling, -1, /*precise=*/true);
  const mx::array before = mx::cumsum(probabilities, -1, /*reverse=*/false, /*inclusive=*/false);
  const mx::array never = mx::array(-std::numeric_limits<float>::infinity());
  return mx::where(mx::less(before, mx::array(top_p)), falling, never);
}

}  // namespace

Sampler::Sampler(const SamplingSettings& settings) : settings_(settings) { restart(); }

void Sampler::set_seed(uint64_t seed) {
  seeded_ = true;
  seed_ = seed;
}

void Sampler::restart() {
  if (!seeded_ && !settings_.greedy()) seed_ = random_seed();
}

mx::array Sampler::sample(const mx::array& logits, uint64_t draw, const std::optional<mx::array>& recent) const {
  const mx::array fair = recent && penalises() ? penalised(logits, *recent) : logits;
  if (settings_.greedy()) return mx::astype(mx::argmax(fair, -1, /*keepdims=*/true), mx::int32);
  return drawn(fair, draw);
}

// Division alone would make a negative logit likelier. A token that comes twice is penalised once: both times the same
// value is put in its place.
mx::array Sampler::penalised(const mx::array& logits, const mx::array& recent) const {
  const mx::array values = mx::take(logits, recent);
  const mx::array penalty = mx::array(settings_.repeat_penalty);
  const mx::array lower = mx::where(mx::less_equal(values, mx::array(0.0f)), values * penalty, values / penalty);
  return mx::put_along_axis(logits, recent, lower, 0);
}

mx::array Sampler::drawn(const mx::array& logits, uint64_t draw) const {
  const int size = logits.shape(0);
  const int top_k = settings_.top_k > 0 ? std::min(settings_.top_k, size) : size;
  mx::array values = logits;
  std::optional<mx::array> tokens;  // of the values; unset: all, in order
  if (top_k < size) {
    tokens = first(mx::argpartition(mx::negative(values), top_k - 1), top_k);
    values = mx::take(values, *tokens);
  }
  if (settings_.top_p < 1.0f) {
    const mx::array order = mx::argsort(mx::negative(values));
    tokens = tokens ? mx::take(*tokens, order) : order;
    values = keep_top_p(mx::take(values, order), settings_.top_p);
  }
  const mx::array key = mx::random::key(mix(seed_, draw));
  const mx::array chosen =
      mx::reshape(mx::random::categorical(values / mx::array(settings_.temperature), -1, key), {1});
  return mx::astype(tokens ? mx::take(*tokens, chosen) : chosen, mx::int32);
}

}  // namespace eliza::mlx
