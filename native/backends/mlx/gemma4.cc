// Gemma 4, the dense text part: heads of two sizes, an embedding of its own for every layer, keys and values that the
// last layers share with earlier ones.
#include <cmath>
#include <optional>
#include <vector>

#include "native/backends/mlx/layers.h"
#include "native/backends/mlx/model.h"
#include "native/backends/mlx/rope.h"

namespace eliza::mlx {
namespace {

// The defaults are mlx-lm's.
struct Settings {
  Axis hidden, intermediate, vocabulary;
  int heads, kv_heads, global_kv_heads, head, global_head;
  int64_t layers, shared_layers, window;
  Axis per_layer, per_layer_vocabulary;  // per_layer 0: no embedding of each layer's own
  float epsilon;
  bool keys_are_values, double_wide;
  std::vector<bool> sliding;    // by layer
  std::vector<size_t> past_of;  // by layer: the one whose keys and values it uses, its own or an earlier one's

  explicit Settings(const Config& config)
      : hidden{config.integer("hidden_size", kDimension, 1536), "hidden_size"},
        intermediate{config.integer("intermediate_size", kDimension, 6144), "intermediate_size"},
        vocabulary{config.integer("vocab_size", kVocabulary, 262144), "vocab_size"},
        heads(static_cast<int>(config.integer("num_attention_heads", kDimension, 8))),
        kv_heads(static_cast<int>(config.integer("num_key_value_heads", kDimension, 1))),
        global_kv_heads(static_cast<int>(config.integer("num_global_key_value_heads", kDimension, kv_heads))),
        head(static_cast<int>(config.integer("head_dim", kDimension, 256))),
        global_head(static_cast<int>(config.integer("global_head_dim", kDimension, 512))),
        layers(config.integer("num_hidden_layers", kLayers, 35)),
        shared_layers(config.integer("num_kv_shared_layers", {0, kLayers.most}, 20)),
        window(config.integer("sliding_window", kVocabulary, 512)),
        per_layer{config.integer("hidden_size_per_layer_input", {0, kDimension.most}, 256),
                  "hidden_size_per_layer_input"},
        per_layer_vocabulary{config.integer("vocab_size_per_layer_input", kVocabulary, 262144),
                             "vocab_size_per_layer_input"},
        epsilon(static_cast<float>(config.number("rms_norm_eps", {0, 1}, 1e-6))),
        keys_are_values(config.boolean("attention_k_eq_v", false)),
        double_wide(config.boolean("use_double_wide_mlp", true)),
        sliding(sliding_layers(config, layers, config.integer("sliding_window_pattern", kLayers, 5))) {
    if (config.boolean("enable_moe_block", false)) {
      config.reject("enable_moe_block", "false: mixtures of experts are not among the models that run here");
    }
    if (heads % kv_heads != 0) config.reject("num_key_value_heads", "a divisor of num_attention_heads");
    if (heads % global_kv_heads != 0) config.reject("num_global_key_value_heads", "a divisor of num_attention_heads");
    if (head % 2 != 0) config.reject("head_dim", "an even number");
    if (global_head % 2 != 0) config.reject("global_head_dim", "an even number");
    if (shared_layers >= layers) config.reject("num_kv_shared_layers", "less than num_hidden_layers");
    if (per_layer.size > 0 && per_layer_vocabulary.size < vocabulary.size) {
      config.reject("vocab_size_per_layer_input", "at least vocab_size: every token has a row in it");
    }
    for (size_t layer = 0; layer < sliding.size(); ++layer) past_of.push_back(find_past(config, layer));
  }

  // Its own, or of its kind's last that has some.
  size_t find_past(const Config& config, size_t layer) const {
    const size_t own = static_cast<size_t>(own_layers());
    if (layer < own) return layer;
    for (size_t earlier = own; earlier-- > 0;) {
      if (sliding[earlier] == sliding[layer]) return earlier;
    }
    config.reject("num_kv_shared_layers", "so few that each kind of layer keeps one with keys and values of its own");
  }

  int64_t own_layers() const { return layers - shared_layers; }  // with keys and values of their own
  bool uses_keys_as_values(size_t layer) const { return keys_are_values && !sliding[layer]; }
  int kv_heads_of(size_t layer) const { return uses_keys_as_values(layer) ? global_kv_heads : kv_heads; }
  Axis head_of(size_t layer) const {
    return sliding[layer] ? Axis{head, "head_dim"} : Axis{global_head, "global_head_dim"};
  }
  Axis all_per_layer() const { return {layers * per_layer.size, "num_hidden_layers * hidden_size_per_layer_input"}; }
};

Rope make_rope(const Config& config, int head, bool sliding) {
  const bool traditional = config.boolean("rope_traditional", false);
  const std::optional<Config> parameters = config.object("rope_parameters");
  const std::optional<Config> own =
      parameters ? parameters->object(sliding ? "sliding_attention" : "full_attention") : std::nullopt;
  if (own) return Rope(head, own->number("rope_theta", kPositive, 1e4), traditional, own);
  if (parameters) return Rope(head, 1e4, traditional, std::nullopt);
  return sliding ? Rope(head, 1e4, traditional, std::nullopt) : Rope(head, 1e6, traditional, /*part=*/0.25);
}

// One layer's keys and values, and the position of the first query that may use them.
struct Past {
  mx::array keys;
  mx::array values;
  int offset;
};

class Attention {
 public:
  Attention(const Config& config, Weights& weights, const std::string& path, const Settings& settings, size_t layer)
      : heads_(settings.heads),
        kv_heads_(settings.kv_heads_of(layer)),
        head_(static_cast<int>(settings.head_of(layer).size)),
        epsilon_(settings.epsilon),
        rope_(make_rope(config, head_, settings.sliding[layer])),
        query_(weights, path + "q_proj", queries(settings, layer), settings.hidden),
        output_(weights, path + "o_proj", settings.hidden, queries(settings, layer)),
        query_norm_(weights, path + "q_norm", settings.head_of(layer), settings.epsilon) {
    if (static_cast<int64_t>(layer) >= settings.own_layers()) return;
    const Axis keys{int64_t{kv_heads_} * head_, "key and value heads * their size"};
    key_.emplace(weights, path + "k_proj", keys, settings.hidden);
    if (!settings.uses_keys_as_values(layer)) value_.emplace(weights, path + "v_proj", keys, settings.hidden);
    key_norm_.emplace(weights, path + "k_norm", settings.head_of(layer), settings.epsilon);
  }

  // Adds this layer's keys and values of x to its cache.
  Past remember(const mx::array& x, KvCache* cache) const {
    const int offset = cache->offset();
    const mx::array raw = split_heads((*key_)(x), kv_heads_, head_);
    const mx::array values = value_ ? split_heads((*value_)(x), kv_heads_, head_) : raw;
    const auto past =
        cache->update(rope_((*key_norm_)(raw), offset), mx::fast::rms_norm(values, std::nullopt, epsilon_));
    return {past.first, past.second, offset};
  }

  mx::array operator()(const mx::array& x, const Past& past, const Mask& mask) const {
    const mx::array queries = rope_(query_norm_(split_heads(query_(x), heads_, head_)), past.offset);
    return output_(merge_heads(attend(queries, past.keys, past.values, /*scale=*/1.0, mask)));
  }

 private:
  static Axis queries(const Settings& settings, size_t layer) {
    return {settings.heads * settings.head_of(layer).size,
            settings.sliding[layer] ? "num_attention_heads * head_dim" : "num_attention_heads * global_head_dim"};
  }

  int heads_, kv_heads_, head_;
  float epsilon_;
  Rope rope_;
  Linear query_, output_;
  RmsNorm query_norm_;
  std::optional<Linear> key_, value_;  // unset: shared with an earlier layer; value_ alone: the keys are the values
  std::optional<RmsNorm> key_norm_;
};

// How a layer takes in its own embedding of each token.
class PerLayerInput {
 public:
  PerLayerInput(Weights& weights, const std::string& path, const Settings& settings)
      : gate_(weights, path + "per_layer_input_gate", settings.per_layer, settings.hidden),
        projection_(weights, path + "per_layer_projection", settings.hidden, settings.per_layer),
        norm_(weights, path + "post_per_layer_input_norm", settings.hidden, settings.epsilon) {}

  mx::array operator()(const mx::array& x, const mx::array& input) const {
    return x + norm_(projection_(gelu(gate_(x)) * input));
  }

 private:
  Linear gate_, projection_;
  RmsNorm norm_;
};

class Layer {
 public:
  Layer(const Config& config, Weights& weights, const std::string& path, const Settings& settings, size_t layer)
      : attention(config, weights, path + "self_attn.", settings, layer),
        attention_norm_(weights, path + "input_layernorm", settings.hidden, settings.epsilon),
        after_attention_(weights, path + "post_attention_layernorm", settings.hidden, settings.epsilon),
        mlp_norm_(weights, path + "pre_feedforward_layernorm", settings.hidden, settings.epsilon),
        mlp_(weights, path + "mlp", settings.hidden, mlp_width(settings, layer), Mlp::Activation::kGelu),
        after_mlp_(weights, path + "post_feedforward_layernorm", settings.hidden, settings.epsilon),
        scalar_(weights.take(path + "layer_scalar", {{1, "one value"}})) {
    if (settings.per_layer.size > 0) per_layer_.emplace(weights, path, settings);
  }

  const Attention attention;

  mx::array normalised(const mx::array& x) const { return attention_norm_(x); }

  // What follows the attention over normalised(x), whose result is `attended`.
  mx::array finish(const mx::array& x, const mx::array& attended, const std::optional<mx::array>& input) const {
    mx::array h = x + after_attention_(attended);
    h = h + after_mlp_(mlp_(mlp_norm_(h)));
    if (per_layer_ && input) h = (*per_layer_)(h, *input);
    return h * scalar_;
  }

 private:
  static Axis mlp_width(const Settings& settings, size_t layer) {
    const bool shared = settings.shared_layers > 0 && static_cast<int64_t>(layer) >= settings.own_layers();
    if (!shared || !settings.double_wide) return settings.intermediate;
    return {2 * settings.intermediate.size, "intermediate_size, doubled by use_double_wide_mlp"};
  }

  RmsNorm attention_norm_, after_attention_, mlp_norm_;
  Mlp mlp_;
  RmsNorm after_mlp_;
  std::optional<PerLayerInput> per_layer_;
  mx::array scalar_;
};

// The embeddings of all layers at once: [1, L, layers, per_layer].
class PerLayerEmbedding {
 public:
  PerLayerEmbedding(Weights& weights, const std::string& path, const Settings& settings)
      : layers_(static_cast<int>(settings.layers)),
        width_(static_cast<int>(settings.per_layer.size)),
        hidden_(static_cast<double>(settings.hidden.size)),
        embedding_(weights, path + "embed_tokens_per_layer", settings.per_layer_vocabulary, settings.all_per_layer()),
        projection_(weights, path + "per_layer_model_projection", settings.all_per_layer(), settings.hidden),
        norm_(weights, path + "per_layer_projection_norm", settings.per_layer, settings.epsilon) {}

  mx::array operator()(const mx::array& ids, const mx::array& h) const {
    const mx::Shape shape{1, ids.shape(1), layers_, width_};
    const mx::array tokens = mx::reshape(scaled(embedding_.rows(ids), std::sqrt(static_cast<double>(width_))), shape);
    const mx::array context = norm_(mx::reshape(scaled(projection_(h), 1.0 / std::sqrt(hidden_)), shape));
    return scaled(context + tokens, std::sqrt(0.5));
  }

 private:
  int layers_, width_;
  double hidden_;
  Matrix embedding_;
  Linear projection_;
  RmsNorm norm_;
};

class Gemma4 final : public Model {
 public:
  Gemma4(const Config& config, Weights& weights, const Names& names, const Settings& settings)
      : settings_(settings),
        embedding_(weights, names.model + "embed_tokens", settings.vocabulary, settings.hidden),
        norm_(weights, names.model + "norm", settings.hidden, settings.epsilon) {
    if (settings.per_layer.size > 0) per_layer_.emplace(weights, names.model, settings);
    for (size_t i = 0; i < settings.sliding.size(); ++i) {
      layers_.emplace_back(config, weights, names.model + "layers." + std::to_string(i) + ".", settings, i);
      if (settings.past_of[i] == i) {
        const int64_t window = settings.sliding[i] ? settings.window : 0;
        cache_shapes_.push_back({window, settings.kv_heads_of(i), settings.head_of(i).size});
      }
    }
    if (!config.boolean("tie_word_embeddings", true)) {
      lm_head_.emplace(weights, names.lm_head, settings.vocabulary, settings.hidden);
    }
    // null switches it off.
    if (!config.is_null("final_logit_softcapping")) {
      cap_ = config.number("final_logit_softcapping", kPositive, 30.0);
    }
    vocab_size_ = static_cast<int32_t>(settings.vocabulary.size);
    trained_context_ = static_cast<int32_t>(config.integer("max_position_embeddings", kPositions, 131072));
    query_heads_ = settings.heads;
    dtype_ = embedding_.dtype();
  }

  mx::array forward(const mx::array& ids, std::vector<KvCache>* caches) const override {
    const Masks masks(*caches, cache_shapes_, ids.shape(1));
    mx::array h = scaled(embedding_.rows(ids), std::sqrt(static_cast<double>(settings_.hidden.size)));
    std::optional<mx::array> inputs;
    if (per_layer_) inputs = (*per_layer_)(ids, h);
    std::vector<Past> pasts;  // of the layers with caches: the first ones
    for (size_t i = 0; i < layers_.size(); ++i) {
      const mx::array x = layers_[i].normalised(h);
      if (settings_.past_of[i] == i) pasts.push_back(layers_[i].attention.remember(x, &(*caches)[i]));
      const mx::array attended = layers_[i].attention(x, pasts[settings_.past_of[i]], masks.of(settings_.sliding[i]));
      h = layers_[i].finish(h, attended, input_of(inputs, static_cast<int>(i)));
    }
    return norm_(h);
  }

  mx::array logits(const mx::array& activations) const override {
    const mx::array raw = lm_head_ ? (*lm_head_)(activations) : embedding_.times(activations);
    if (!cap_) return mx::astype(raw, mx::float32);
    const mx::array cap = mx::astype(mx::array(static_cast<float>(*cap_)), raw.dtype());
    return mx::astype(mx::tanh(raw / cap) * cap, mx::float32);
  }

 private:
  std::optional<mx::array> input_of(const std::optional<mx::array>& inputs, int layer) const {
    if (!inputs) return std::nullopt;
    const int count = inputs->shape(1), width = inputs->shape(3);
    return mx::reshape(mx::slice(*inputs, {0, 0, layer, 0}, {1, count, layer + 1, width}), {1, count, width});
  }

  Settings settings_;
  Matrix embedding_;
  std::optional<PerLayerEmbedding> per_layer_;
  std::vector<Layer> layers_;
  RmsNorm norm_;
  std::optional<Linear> lm_head_;
  std::optional<double> cap_;
};

}  // namespace

std::unique_ptr<Model> make_gemma4(const Config& config, Weights& weights) {
  return std::make_unique<Gemma4>(config, weights, find_names(weights), Settings(config));
}

}  // namespace eliza::mlx
