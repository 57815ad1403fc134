// The context of one stream, as the model sees it: caches, the logits behind them, and the token that is computed while
// the caller reads the one before it.
//
// Used on the model's worker thread only, except where noted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "native/backends/mlx/kv-cache.h"
#include "native/backends/mlx/mlx-core.h"
#include "native/backends/mlx/model.h"
#include "native/backends/mlx/sampler.h"

namespace eliza::mlx {

class Decoder {
 public:
  // Any thread; nothing is computed.
  Decoder(const Model& model, const SamplingSettings& settings);

  // Positions in the caches: the first so many tokens of the context.
  size_t cached() const { return cached_; }

  // Computes the next tokens of the context, and waits. `last`: a choice follows.
  void feed(const int32_t* tokens, size_t count, bool last);

  // Chooses the token after `context`, all of which has been fed. With `ahead`, starts to compute the one after that
  // before it waits for this one: then this one is in the caches, too.
  int32_t choose(const std::vector<int32_t>& context, bool ahead);

  // Whether the first `count` tokens can be kept, and no others.
  bool can_truncate(size_t count) const;

  // Drops what follows the first `count` tokens, and any choice.
  void truncate(size_t count);

  void set_seed(uint64_t seed);
  void restart_sampler();

  const std::vector<KvCache>& caches() const { return caches_; }
  void restore(std::vector<KvCache> caches, size_t cached);

 private:
  // Chosen, perhaps still being computed, and not asked for.
  struct Ahead {
    mx::array logits;
    mx::array token;
  };

  std::optional<mx::array> recent(const std::vector<int32_t>& context, const mx::array* token) const;
  mx::array last_logits(const mx::array& activations) const;

  const Model& model_;
  Sampler sampler_;
  std::vector<KvCache> caches_;
  size_t cached_ = 0;
  uint64_t draws_ = 0;               // since the sampler's start
  std::optional<mx::array> logits_;  // behind the last token fed
  std::optional<Ahead> ahead_;
};

}  // namespace eliza::mlx
