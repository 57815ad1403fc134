// Gemma 3, the text part: a window for most layers, norms on both sides of each block and on queries and keys.
#include <cmath>
#include <limits>
#include <vector>

#include "native/backends/mlx/layers.h"
#include "native/backends/mlx/model.h"
#include "native/backends/mlx/rope.h"

namespace eliza::mlx {
namespace {

// The defaults are mlx-lm's, for the keys that converted models leave out: those of Gemma 3 1B, and in a model with
// vision, those of 4B for the numbers of heads.
struct Settings {
  Axis hidden, intermediate, vocabulary;
  int heads, kv_heads, head;
  int64_t layers, window;
  float epsilon;
  double attention_scale;

  Settings(const Config& config, bool with_vision)
      : hidden{config.integer("hidden_size", kDimension, 1152), "hidden_size"},
        intermediate{config.integer("intermediate_size", kDimension, 6912), "intermediate_size"},
        vocabulary{config.integer("vocab_size", kVocabulary, with_vision ? 262208 : 262144), "vocab_size"},
        heads(static_cast<int>(config.integer("num_attention_heads", kDimension, with_vision ? 8 : 4))),
        kv_heads(static_cast<int>(config.integer("num_key_value_heads", kDimension, with_vision ? 4 : 1))),
        head(static_cast<int>(config.integer("head_dim", kDimension, 256))),
        layers(config.integer("num_hidden_layers", kLayers, 26)),
        window(config.integer("sliding_window", kVocabulary, 512)),
        epsilon(static_cast<float>(config.number("rms_norm_eps", {0, 1}, 1e-6))),
        attention_scale(1.0 / std::sqrt(config.number("query_pre_attn_scalar", kPositive, 256))) {
    if (heads % kv_heads != 0) config.reject("num_key_value_heads", "a divisor of num_attention_heads");
    if (head % 2 != 0) config.reject("head_dim", "an even number");
  }

  Axis queries() const { return {int64_t{heads} * head, "num_attention_heads * head_dim"}; }
  Axis keys() const { return {int64_t{kv_heads} * head, "num_key_value_heads * head_dim"}; }
  Axis per_head() const { return {head, "head_dim"}; }
};

Rope full_rope(const Config& config, int head) {
  const std::optional<Config> parameters = config.object("rope_parameters");
  const std::optional<Config> full = parameters ? parameters->object("full_attention") : std::nullopt;
  const double base = config.number("rope_theta", kPositive, full ? full->number("rope_theta", kPositive, 1e6) : 1e6);
  const std::optional<Config> scaling = config.object("rope_scaling");
  return Rope(head, base, /*traditional=*/false, scaling ? scaling : full);
}

Rope sliding_rope(const Config& config, int head) {
  const std::optional<Config> parameters = config.object("rope_parameters");
  const std::optional<Config> local = parameters ? parameters->object("sliding_attention") : std::nullopt;
  const double fallback = local ? local->number("rope_theta", kPositive, 1e4) : 1e4;
  return Rope(head, config.number("rope_local_base_freq", kPositive, fallback), /*traditional=*/false, std::nullopt);
}

// x + y, which in float16 overflows without care.
mx::array add_residual(const mx::array& x, const mx::array& y) {
  if (x.dtype() != mx::float16) return x + y;
  constexpr float kMost = 65504.0f;
  const mx::array sum = mx::astype(x, mx::float32) + mx::astype(y, mx::float32);
  return mx::astype(mx::clip(sum, mx::array(-kMost), mx::array(kMost)), mx::float16);
}

class Layer {
 public:
  Layer(Weights& weights, const std::string& path, const Settings& settings)
      : settings_(settings),
        attention_norm_(weights, path + "input_layernorm", settings.hidden, settings.epsilon, true),
        query_(weights, path + "self_attn.q_proj", settings.queries(), settings.hidden),
        key_(weights, path + "self_attn.k_proj", settings.keys(), settings.hidden),
        value_(weights, path + "self_attn.v_proj", settings.keys(), settings.hidden),
        output_(weights, path + "self_attn.o_proj", settings.hidden, settings.queries()),
        query_norm_(weights, path + "self_attn.q_norm", settings.per_head(), settings.epsilon, true),
        key_norm_(weights, path + "self_attn.k_norm", settings.per_head(), settings.epsilon, true),
        after_attention_(weights, path + "post_attention_layernorm", settings.hidden, settings.epsilon, true),
        mlp_norm_(weights, path + "pre_feedforward_layernorm", settings.hidden, settings.epsilon, true),
        mlp_(weights, path + "mlp", settings.hidden, settings.intermediate, Mlp::Activation::kGelu),
        after_mlp_(weights, path + "post_feedforward_layernorm", settings.hidden, settings.epsilon, true) {}

  mx::array operator()(const mx::array& x, const Rope& rope, const Mask& mask, KvCache* cache) const {
    const mx::array h = add_residual(x, after_attention_(attention(attention_norm_(x), rope, mask, cache)));
    return add_residual(h, after_mlp_(mlp_(mlp_norm_(h))));
  }

 private:
  mx::array attention(const mx::array& x, const Rope& rope, const Mask& mask, KvCache* cache) const {
    const int offset = cache->offset();
    const mx::array queries = rope(query_norm_(split_heads(query_(x), settings_.heads, settings_.head)), offset);
    const mx::array keys = rope(key_norm_(split_heads(key_(x), settings_.kv_heads, settings_.head)), offset);
    const auto past = cache->update(keys, split_heads(value_(x), settings_.kv_heads, settings_.head));
    return output_(merge_heads(attend(queries, past.first, past.second, settings_.attention_scale, mask)));
  }

  Settings settings_;
  RmsNorm attention_norm_;
  Linear query_, key_, value_, output_;
  RmsNorm query_norm_, key_norm_;
  RmsNorm after_attention_, mlp_norm_;
  Mlp mlp_;
  RmsNorm after_mlp_;
};

class Gemma3 final : public Model {
 public:
  Gemma3(const Config& config, Weights& weights, const Names& names, const Settings& settings)
      : embedding_(weights, names.model + "embed_tokens", settings.vocabulary, settings.hidden),
        // In bfloat16, as it was trained: sqrt(640) is 25.25.
        embedding_scale_(mx::array(std::sqrt(static_cast<float>(settings.hidden.size)), mx::bfloat16)),
        full_rope_(full_rope(config, settings.head)),
        sliding_rope_(sliding_rope(config, settings.head)),
        norm_(weights, names.model + "norm", settings.hidden, settings.epsilon, true) {
    const int64_t pattern =
        config.integer("sliding_window_pattern", kLayers, config.integer("_sliding_window_pattern", kLayers, 6));
    sliding_ = sliding_layers(config, settings.layers, pattern);
    for (int64_t i = 0; i < settings.layers; ++i) {
      layers_.emplace_back(weights, names.model + "layers." + std::to_string(i) + ".", settings);
      const bool sliding = sliding_[static_cast<size_t>(i)];
      cache_shapes_.push_back({sliding ? settings.window : 0, settings.kv_heads, settings.head});
    }
    if (weights.has(names.lm_head + ".weight")) {
      lm_head_.emplace(weights, names.lm_head, settings.vocabulary, settings.hidden);
    }
    vocab_size_ = static_cast<int32_t>(settings.vocabulary.size);
    trained_context_ = static_cast<int32_t>(config.integer("max_position_embeddings", kPositions, 32768));
    query_heads_ = settings.heads;
    dtype_ = embedding_.dtype();
  }

  mx::array forward(const mx::array& ids, std::vector<KvCache>* caches) const override {
    const Masks masks(*caches, cache_shapes_, ids.shape(1));
    mx::array h = embedding_.rows(ids);
    h = h * mx::astype(embedding_scale_, h.dtype());
    for (size_t i = 0; i < layers_.size(); ++i) {
      h = layers_[i](h, sliding_[i] ? sliding_rope_ : full_rope_, masks.of(sliding_[i]), &(*caches)[i]);
    }
    return norm_(h);
  }

  mx::array logits(const mx::array& activations) const override {
    return mx::astype(lm_head_ ? (*lm_head_)(activations) : embedding_.times(activations), mx::float32);
  }

 private:
  Matrix embedding_;
  mx::array embedding_scale_;
  Rope full_rope_, sliding_rope_;
  std::vector<bool> sliding_;  // by layer
  std::vector<Layer> layers_;
  RmsNorm norm_;
  std::optional<Linear> lm_head_;
};

}  // namespace

std::unique_ptr<Model> make_gemma3(const Config& config, Weights& weights) {
  const bool with_vision = config.text("model_type") == "gemma3" || config.has("text_config");
  return std::make_unique<Gemma3>(config, weights, find_names(weights), Settings(config, with_vision));
}

}  // namespace eliza::mlx
