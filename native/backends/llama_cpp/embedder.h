// Embeddings of texts.
#pragma once

#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "native/backends/llama_cpp/model-cache.h"
#include "native/backends/llama_cpp/stop-flag.h"

namespace eliza::llama_cpp {

// Thread-safe; one text at a time. Keeps no context between calls: each text gets one of its own length, since a pooled
// embedding needs all tokens in one batch, with work buffers to match.
class Embedder {
 public:
  // Ends a text under way with ELIZA_ERR_CANCELLED when `stop`, which outlives it, is set.
  Embedder(std::shared_ptr<const Model> model, const StopFlag& stop) : model_(std::move(model)), stop_(stop) {}

  // The L2-normalised embedding of a text. `pooling` as in eliza_inference_embed: 1 mean, 2 first token, 3 last token.
  // Throws Error.
  std::vector<float> embed(std::string_view text, int pooling);

 private:
  std::shared_ptr<const Model> model_;
  const StopFlag& stop_;
  std::mutex mutex_;
};

}  // namespace eliza::llama_cpp
