// Llama, and what is built like it: SmolLM2.
#include <vector>

#include "native/backends/mlx/layers.h"
#include "native/backends/mlx/model.h"
#include "native/backends/mlx/rope.h"

namespace eliza::mlx {
namespace {

struct Settings {
  Axis hidden, intermediate, vocabulary;
  int heads, kv_heads, head;
  float epsilon;
  bool attention_bias, mlp_bias;

  explicit Settings(const Config& config)
      : hidden{config.integer("hidden_size", kDimension), "hidden_size"},
        intermediate{config.integer("intermediate_size", kDimension), "intermediate_size"},
        vocabulary{config.integer("vocab_size", kVocabulary), "vocab_size"},
        heads(static_cast<int>(config.integer("num_attention_heads", kDimension))),
        kv_heads(static_cast<int>(config.integer("num_key_value_heads", kDimension, heads))),
        head(static_cast<int>(config.integer("head_dim", kDimension, hidden.size / heads))),
        epsilon(static_cast<float>(config.number("rms_norm_eps", {0, 1}))),
        attention_bias(config.boolean("attention_bias", false)),
        mlp_bias(config.boolean("mlp_bias", false)) {
    if (heads % kv_heads != 0) config.reject("num_key_value_heads", "a divisor of num_attention_heads");
    if (head < 2 || head % 2 != 0) config.reject("head_dim", "an even number");
    if (config.text("hidden_act", "silu") != "silu") config.reject("hidden_act", "silu");
    if (config.has("layer_types")) {
      const int64_t layers = config.integer("num_hidden_layers", kLayers);
      for (const std::string& type : config.texts("layer_types", static_cast<size_t>(layers))) {
        if (type != "full_attention") config.reject("layer_types", "full_attention for each layer");
      }
    }
  }

  Axis queries() const { return {int64_t{heads} * head, "num_attention_heads * head_dim"}; }
  Axis keys() const { return {int64_t{kv_heads} * head, "num_key_value_heads * head_dim"}; }
};

Rope make_rope(const Config& config, int head) {
  // Newer configs have both in one object.
  const std::optional<Config> parameters = config.object("rope_parameters");
  std::optional<Config> scaling = config.object("rope_scaling");
  if (!scaling) scaling = parameters;
  const double fallback = parameters ? parameters->number("rope_theta", kPositive, 10000) : 10000;
  return Rope(head, config.number("rope_theta", kPositive, fallback), config.boolean("rope_traditional", false),
              scaling);
}

class Layer {
 public:
  Layer(Weights& weights, const std::string& path, const Settings& settings)
      : heads_(settings.heads),
        kv_heads_(settings.kv_heads),
        head_(settings.head),
        attention_norm_(weights, path + "input_layernorm", settings.hidden, settings.epsilon),
        query_(weights, path + "self_attn.q_proj", settings.queries(), settings.hidden, settings.attention_bias),
        key_(weights, path + "self_attn.k_proj", settings.keys(), settings.hidden, settings.attention_bias),
        value_(weights, path + "self_attn.v_proj", settings.keys(), settings.hidden, settings.attention_bias),
        output_(weights, path + "self_attn.o_proj", settings.hidden, settings.queries(), settings.attention_bias),
        mlp_norm_(weights, path + "post_attention_layernorm", settings.hidden, settings.epsilon),
        mlp_(weights, path + "mlp", settings.hidden, settings.intermediate, Mlp::Activation::kSilu, settings.mlp_bias) {
  }

  mx::array operator()(const mx::array& x, const Rope& rope, const Mask& mask, KvCache* cache) const {
    const mx::array h = x + attention(attention_norm_(x), rope, mask, cache);
    return h + mlp_(mlp_norm_(h));
  }

 private:
  mx::array attention(const mx::array& x, const Rope& rope, const Mask& mask, KvCache* cache) const {
    const int offset = cache->offset();
    const mx::array queries = rope(split_heads(query_(x), heads_, head_), offset);
    const mx::array keys = rope(split_heads(key_(x), kv_heads_, head_), offset);
    const auto past = cache->update(keys, split_heads(value_(x), kv_heads_, head_));
    const double scale = 1.0 / std::sqrt(static_cast<double>(head_));
    return output_(merge_heads(attend(queries, past.first, past.second, scale, mask)));
  }

  int heads_, kv_heads_, head_;
  RmsNorm attention_norm_;
  Linear query_, key_, value_, output_;
  RmsNorm mlp_norm_;
  Mlp mlp_;
};

class Llama final : public Model {
 public:
  Llama(const Config& config, Weights& weights, const Names& names, const Settings& settings)
      : embedding_(weights, names.model + "embed_tokens", settings.vocabulary, settings.hidden),
        rope_(make_rope(config, settings.head)),
        norm_(weights, names.model + "norm", settings.hidden, settings.epsilon) {
    const int64_t layers = config.integer("num_hidden_layers", kLayers);
    for (int64_t i = 0; i < layers; ++i) {
      layers_.emplace_back(weights, names.model + "layers." + std::to_string(i) + ".", settings);
      cache_shapes_.push_back({0, settings.kv_heads, settings.head});
    }
    if (!config.boolean("tie_word_embeddings", !weights.has(names.lm_head + ".weight"))) {
      lm_head_.emplace(weights, names.lm_head, settings.vocabulary, settings.hidden);
    }
    vocab_size_ = static_cast<int32_t>(settings.vocabulary.size);
    trained_context_ = static_cast<int32_t>(config.integer("max_position_embeddings", kPositions, 2048));
    query_heads_ = settings.heads;
    dtype_ = embedding_.dtype();
  }

  mx::array forward(const mx::array& ids, std::vector<KvCache>* caches) const override {
    const Masks masks(*caches, cache_shapes_, ids.shape(1));
    mx::array h = embedding_.rows(ids);
    for (size_t i = 0; i < layers_.size(); ++i) h = layers_[i](h, rope_, masks.of(false), &(*caches)[i]);
    return norm_(h);
  }

  mx::array logits(const mx::array& activations) const override {
    return mx::astype(lm_head_ ? (*lm_head_)(activations) : embedding_.times(activations), mx::float32);
  }

 private:
  Matrix embedding_;
  Rope rope_;
  std::vector<Layer> layers_;
  RmsNorm norm_;
  std::optional<Linear> lm_head_;
};

}  // namespace

std::unique_ptr<Model> make_llama(const Config& config, Weights& weights) {
  return std::make_unique<Llama>(config, weights, find_names(weights), Settings(config));
}

}  // namespace eliza::mlx
