// A model's graph: from token ids to logits, one file per architecture.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "native/backends/mlx/config.h"
#include "native/backends/mlx/kv-cache.h"
#include "native/backends/mlx/mlx-core.h"
#include "native/backends/mlx/weights.h"

namespace eliza::mlx {

// Immutable once built. Its functions build lazy graphs, on the thread that evaluated its weights.
class Model {
 public:
  virtual ~Model() = default;

  // The activations [1, L, hidden] behind the last norm, of ids [1, L]. Adds these positions to the caches.
  virtual mx::array forward(const mx::array& ids, std::vector<KvCache>* caches) const = 0;

  // The logits [1, L, vocabulary] of such activations, as float32.
  virtual mx::array logits(const mx::array& activations) const = 0;

  // What forward needs, one entry for each layer that keeps keys and values.
  const std::vector<CacheShape>& cache_shapes() const { return cache_shapes_; }
  std::vector<KvCache> new_caches() const;

  int32_t vocab_size() const { return vocab_size_; }
  int32_t trained_context() const { return trained_context_; }
  mx::Dtype dtype() const { return dtype_; }  // of activations, keys and values
  int32_t query_heads() const { return query_heads_; }

 protected:
  std::vector<CacheShape> cache_shapes_;
  int32_t vocab_size_ = 0;
  int32_t trained_context_ = 0;
  int32_t query_heads_ = 0;
  mx::Dtype dtype_ = mx::float32;
};

// The model that `config` describes. Throws Error: an unknown model_type, with the known ones; a config or tensors that
// do not fit each other. Nothing is computed.
std::unique_ptr<Model> make_model(const Config& config, Weights& weights);

// -- For the architectures --------------------------------------------------------------------------------------------

// What a file calls its tensors: those of a text model alone, or of one inside a model with vision.
struct Names {
  std::string model;    // "model." or the like, before "layers.0..."
  std::string lm_head;  // "lm_head" or the like
};
Names find_names(const Weights& weights);

// Gemma's pattern of layers: true where a layer sees a sliding window. "layer_types" says so, or every `pattern`th
// layer is a full one.
std::vector<bool> sliding_layers(const Config& config, int64_t layers, int64_t pattern);

// The masks of one pass, one for each kind of cache.
struct Masks {
  // `caches` by `shapes`; `count` new positions.
  Masks(const std::vector<KvCache>& caches, const std::vector<CacheShape>& shapes, int count);
  const Mask& of(bool sliding) const { return sliding ? sliding_ : full_; }

 private:
  Mask full_;
  Mask sliding_;
};

std::unique_ptr<Model> make_gemma3(const Config& config, Weights& weights);
std::unique_ptr<Model> make_gemma4(const Config& config, Weights& weights);
std::unique_ptr<Model> make_llama(const Config& config, Weights& weights);

}  // namespace eliza::mlx
