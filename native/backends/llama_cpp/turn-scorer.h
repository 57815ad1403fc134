// How likely a token is to come next: whether somebody has finished speaking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "native/backends/llama_cpp/context.h"
#include "native/backends/llama_cpp/stop-flag.h"
#include "native/backends/llama_cpp/turn-score.h"

namespace eliza::llama_cpp {

// Thread-safe; one score at a time. Keeps its context: of a transcript that grows, only what is new is decoded.
class TurnScorer {
 public:
  // Ends a score under way with ELIZA_ERR_CANCELLED when `stop`, which outlives it, is set.
  TurnScorer(std::shared_ptr<const Model> model, const StopFlag& stop) : model_(std::move(model)), stop_(stop) {}

  // After `tokens`: the probability of `target`, and the likeliest token with its own. Throws Error.
  TurnScore score(const int32_t* tokens, size_t num_tokens, int32_t target);

 private:
  std::shared_ptr<const Model> model_;
  const StopFlag& stop_;
  std::mutex mutex_;
  std::unique_ptr<Context> context_;
};

}  // namespace eliza::llama_cpp
