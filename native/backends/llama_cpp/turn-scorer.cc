#include "native/backends/llama_cpp/turn-scorer.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "native/backends/llama_cpp/sampler.h"
#include "native/backends/llama_cpp/tokenizer.h"
#include "native/base/cpu-topology.h"
#include "native/base/error.h"

namespace eliza::llama_cpp {
namespace {

// A turn of a conversation; grows where one is longer.
constexpr size_t kLeastCapacity = 1024;

}  // namespace

TurnScore TurnScorer::score(const int32_t* tokens, size_t num_tokens, int32_t target) {
  if (num_tokens == 0) throw Error(ELIZA_ERR_INVALID_ARG, "num_tokens is 0: there is nothing that could have ended");
  check_tokens(model_->vocab(), tokens, num_tokens);
  check_tokens(model_->vocab(), &target, 1);
  const size_t trained = static_cast<size_t>(std::max(1, llama_model_n_ctx_train(model_->get())));
  if (num_tokens > trained) {
    throw Error(ELIZA_ERR_INVALID_ARG, "there are " + std::to_string(num_tokens) +
                                           " tokens, and the model reads at most " + std::to_string(trained) +
                                           ": pass the last ones");
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  throw_if_stopped(&stop_);
  if (context_ == nullptr || context_->capacity() < num_tokens) {
    context_.reset();  // first, so that there are never two
    Context::Options options;
    const int32_t asked = static_cast<int32_t>(std::min(trained, std::max(kLeastCapacity, 2 * num_tokens)));
    options.capacity = context_size(*model_, asked, 0, options.cache_types);
    options.threads = default_threads();
    context_ = std::make_unique<Context>(model_, options);
    context_->follow_cancel(stop_);
  }
  try {
    context_->decode_prompt(tokens, num_tokens);
  } catch (const Error&) {
    throw_if_stopped(&stop_);  // in its own words: there is no stream to reset
    throw;
  }

  const float* logits = context_->logits();
  const size_t vocab_size = static_cast<size_t>(llama_vocab_n_tokens(model_->vocab()));
  TurnScore score;
  score.top_token = argmax(logits, vocab_size);
  const float most = logits[score.top_token];
  double sum = 0;
  for (size_t i = 0; i < vocab_size; ++i) sum += std::exp(static_cast<double>(logits[i] - most));
  score.top_probability = static_cast<float>(1 / sum);
  score.target_probability = static_cast<float>(std::exp(static_cast<double>(logits[target] - most)) / sum);
  return score;
}

}  // namespace eliza::llama_cpp
