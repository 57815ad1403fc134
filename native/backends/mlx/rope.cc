#include "native/backends/mlx/rope.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace eliza::mlx {
namespace {

constexpr double kPi = 3.14159265358979323846;

// base^(2i / head) for each pair i.
std::vector<float> plain_frequencies(int head, double base) {
  std::vector<float> frequencies;
  for (int i = 0; i < head; i += 2) {
    frequencies.push_back(std::pow(static_cast<float>(base), static_cast<float>(i) / static_cast<float>(head)));
  }
  return frequencies;
}

// Llama 3.1: long waves are stretched by `factor`, short ones are left, and those between are in between.
// (transformers, modeling_rope_utils.py, _compute_llama3_parameters)
std::vector<float> llama3_frequencies(int head, double base, const Config& scaling) {
  const double factor = scaling.number("factor", kPositive);
  const double low = scaling.number("low_freq_factor", kPositive, 1.0);
  const double high = scaling.number("high_freq_factor", kPositive, 4.0);
  const double trained = scaling.number("original_max_position_embeddings", kPositions, 8192);
  if (high <= low) scaling.reject("high_freq_factor", "more than low_freq_factor");
  std::vector<float> frequencies = plain_frequencies(head, base);
  for (float& frequency : frequencies) {
    const double wave = 2 * kPi * frequency;
    if (wave > trained / low) {
      frequency = static_cast<float>(frequency * factor);
    } else if (wave > trained / high) {
      const double smooth = (trained / wave - low) / (high - low);
      frequency = static_cast<float>(frequency / ((1 - smooth) / factor + smooth));
    }
  }
  return frequencies;
}

// Gemma 4: only the first part of a head is rotated, with the frequencies of the whole.
std::vector<float> proportional_frequencies(int head, double base, double factor, double part) {
  const int rotated = static_cast<int>(head * part);
  std::vector<float> frequencies = plain_frequencies(head, base);
  for (size_t pair = 0; pair < frequencies.size(); ++pair) {
    const bool rotates = 2 * static_cast<int>(pair) < rotated;
    frequencies[pair] =
        rotates ? static_cast<float>(frequencies[pair] * factor) : std::numeric_limits<float>::infinity();
  }
  return frequencies;
}

}  // namespace

Rope::Rope(int head, double base, bool traditional, const std::optional<Config>& scaling)
    : head_(head), traditional_(traditional), base_(static_cast<float>(base)) {
  if (!scaling) return;
  const char* key = scaling->has("type") ? "type" : "rope_type";
  const std::string type = scaling->text(key, "default");
  std::vector<float> frequencies;
  if (type == "default") return;
  if (type == "linear") {
    scale_ = static_cast<float>(1.0 / scaling->number("factor", kPositive));
    return;
  }
  if (type == "llama3") {
    frequencies = llama3_frequencies(head, base, *scaling);
  } else if (type == "proportional") {
    frequencies = proportional_frequencies(head, base, scaling->number("factor", kPositive, 1.0),
                                           scaling->number("partial_rotary_factor", {0.0, 1.0}, 1.0));
  } else {
    scaling->reject(key, "one of default, linear, llama3, proportional");
  }
  set_frequencies(frequencies);
}

Rope::Rope(int head, double base, bool traditional, double part) : head_(head), traditional_(traditional) {
  set_frequencies(proportional_frequencies(head, base, /*factor=*/1.0, part));
}

void Rope::set_frequencies(const std::vector<float>& frequencies) {
  base_.reset();
  frequencies_ = mx::array(frequencies.begin(), {static_cast<int>(frequencies.size())});
}

mx::array Rope::operator()(const mx::array& x, int offset) const {
  return mx::fast::rope(x, head_, traditional_, base_, scale_, offset, frequencies_);
}

}  // namespace eliza::mlx
