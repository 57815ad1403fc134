#include "native/backends/mlx/model.h"

namespace eliza::mlx {
std::vector<KvCache> Model::new_caches() const {
  std::vector<KvCache> caches;
  for (const CacheShape& shape : cache_shapes_) caches.emplace_back(shape);
  return caches;
}

std::unique_ptr<Model> make_model(const Config& config, Weights& weights) {
  require_known_model(config);
  const std::string type = config.text("model_type");
  const auto make = type == "llama" ? make_llama : type.rfind("gemma3", 0) == 0 ? make_gemma3 : make_gemma4;
  // A model with vision keeps the keys of its text part to themselves.
  const std::optional<Config> text_config = config.object("text_config");
  return make(text_config ? text_config->or_else(config) : config, weights);
}

Names find_names(const Weights& weights) {
  const Names candidates[] = {
      {"model.", "lm_head"}, {"language_model.model.", "language_model.lm_head"}, {"model.language_model.", "lm_head"}};
  for (const Names& names : candidates) {
    if (weights.has(names.model + "embed_tokens.weight")) return names;
  }
  weights.fail("model.embed_tokens.weight",
               "is missing; so are language_model.model.embed_tokens.weight and "
               "model.language_model.embed_tokens.weight: it is no language model");
}

std::vector<bool> sliding_layers(const Config& config, int64_t layers, int64_t pattern) {
  std::vector<bool> sliding;
  if (!config.has("layer_types")) {
    for (int64_t layer = 0; layer < layers; ++layer) sliding.push_back((layer + 1) % pattern != 0);
    return sliding;
  }
  for (const std::string& type : config.texts("layer_types", static_cast<size_t>(layers))) {
    if (type != "sliding_attention" && type != "full_attention") {
      config.reject("layer_types", "sliding_attention or full_attention for each layer");
    }
    sliding.push_back(type == "sliding_attention");
  }
  return sliding;
}

Masks::Masks(const std::vector<KvCache>& caches, const std::vector<CacheShape>& shapes, int count) {
  bool have_full = false, have_sliding = false;
  for (size_t i = 0; i < caches.size(); ++i) {
    bool& have = shapes[i].window == 0 ? have_full : have_sliding;
    if (have) continue;
    (shapes[i].window == 0 ? full_ : sliding_) = caches[i].mask(count);
    have = true;
  }
}

}  // namespace eliza::mlx
