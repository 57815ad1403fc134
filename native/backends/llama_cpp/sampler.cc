#include "native/backends/llama_cpp/sampler.h"

#include <algorithm>
#include <limits>
#include <new>
#include <random>

namespace eliza::llama_cpp {
namespace {

uint32_t random_seed() {
  std::random_device device;
  return fold_seed((static_cast<uint64_t>(device()) << 32) | device());
}

}  // namespace

// splitmix64's finaliser, so that each of the 64 bits counts. llama.cpp takes one value for "random".
uint32_t fold_seed(uint64_t seed) {
  seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9;
  seed = (seed ^ (seed >> 27)) * 0x94d049bb133111eb;
  const uint32_t folded = static_cast<uint32_t>(seed ^ (seed >> 31));
  return folded == LLAMA_DEFAULT_SEED ? 0 : folded;
}

llama_token argmax(const float* logits, size_t size) {
  // The maximum first, in lanes that the compiler turns into vector instructions; then where it is.
  constexpr size_t kLanes = 16;
  float lanes[kLanes];
  std::fill_n(lanes, kLanes, -std::numeric_limits<float>::infinity());
  size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = logits[i + lane] > lanes[lane] ? logits[i + lane] : lanes[lane];
    }
  }
  float most = *std::max_element(lanes, lanes + kLanes);
  for (; i < size; ++i) most = std::max(most, logits[i]);
  const float* found = std::find(logits, logits + size, most);
  return found == logits + size ? 0 : static_cast<llama_token>(found - logits);
}

Sampler::Sampler(const llama_vocab* vocab, const SamplingSettings& settings)
    : vocab_size_(static_cast<size_t>(llama_vocab_n_tokens(vocab))), settings_(settings) {
  penalised_.reserve(kRepeatPenaltyWindow);
  if (settings_.greedy()) return;
  candidates_.resize(vocab_size_);
  build_chain(random_seed());
}

void Sampler::set_seed(uint64_t seed) {
  seeded_ = true;
  seed_ = fold_seed(seed);
  restart();
}

void Sampler::restart() {
  if (!settings_.greedy()) build_chain(seeded_ ? seed_ : random_seed());
}

void Sampler::build_chain(uint32_t seed) {
  llama_sampler_chain_params params = llama_sampler_chain_default_params();
  SamplerPtr chain(llama_sampler_chain_init(params));
  const auto add = [&](llama_sampler* sampler) {
    if (sampler == nullptr) throw std::bad_alloc();
    llama_sampler_chain_add(chain.get(), sampler);
  };
  if (settings_.top_k > 0) add(llama_sampler_init_top_k(settings_.top_k));
  if (settings_.top_p < 1.0f) add(llama_sampler_init_top_p(settings_.top_p, /*min_keep=*/1));
  if (settings_.temperature != 1.0f) add(llama_sampler_init_temp(settings_.temperature));
  add(llama_sampler_init_dist(seed));
  chain_ = std::move(chain);
}

void Sampler::penalise(float* logits, const std::vector<llama_token>& context) {
  penalised_.clear();
  if (settings_.repeat_penalty == 1.0f) return;
  const size_t window = std::min<size_t>(context.size(), kRepeatPenaltyWindow);
  for (size_t i = context.size() - window; i < context.size(); ++i) {
    const llama_token token = context[i];
    const bool again = std::any_of(penalised_.begin(), penalised_.end(),
                                   [token](const Penalised& earlier) { return earlier.token == token; });
    if (again) continue;
    float& logit = logits[token];
    penalised_.push_back({token, logit});
    // Division alone would make a negative logit likelier; llama_sampler_init_penalties does the same.
    if (logit <= 0) logit *= settings_.repeat_penalty;
    else logit /= settings_.repeat_penalty;
  }
}

llama_token Sampler::draw(const float* logits) {
  for (size_t i = 0; i < vocab_size_; ++i) candidates_[i] = {static_cast<llama_token>(i), logits[i], 0.0f};
  llama_token_data_array candidates = {candidates_.data(), vocab_size_, /*selected=*/-1, /*sorted=*/false};
  llama_sampler_apply(chain_.get(), &candidates);
  const bool drawn = candidates.selected >= 0 && static_cast<size_t>(candidates.selected) < candidates.size;
  return drawn ? candidates.data[candidates.selected].id : argmax(logits, vocab_size_);
}

llama_token Sampler::sample(float* logits, const std::vector<llama_token>& context) {
  penalise(logits, context);
  const llama_token token = settings_.greedy() ? argmax(logits, vocab_size_) : draw(logits);
  for (const Penalised& was : penalised_) logits[was.token] = was.logit;
  return token;
}

}  // namespace eliza::llama_cpp
