// How likely a token is to come next: whether somebody has finished speaking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "native/backends/llama_cpp/context.h"
#include "native/backends/llama_cpp/turn-score.h"

namespace eliza::llama_cpp {

// Thread-safe; one score at a time. Keeps its context: of a transcript that grows, only what is new is decoded.
class TurnScorer {
 public:
  explicit TurnScorer(std::shared_ptr<const Model> model) : model_(std::move(model)) {}

  // After `tokens`: the probability of `target`, and the likeliest token with its own. Throws Error.
  TurnScore score(const int32_t* tokens, size_t num_tokens, int32_t target);

 private:
  std::shared_ptr<const Model> model_;
  std::mutex mutex_;
  std::unique_ptr<Context> context_;
};

}  // namespace eliza::llama_cpp
