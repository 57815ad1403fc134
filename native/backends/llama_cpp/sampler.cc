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

Sampler::Sampler(const llama_vocab* vocab, const SamplingSettings& settings, const std::string& gbnf)
    : vocab_(vocab), vocab_size_(static_cast<size_t>(llama_vocab_n_tokens(vocab))), settings_(settings) {
  if (!gbnf.empty()) grammar_.emplace(vocab, gbnf);
  penalised_.reserve(kRepeatPenaltyWindow);
  if (!settings_.greedy() || grammar_) candidates_.resize(vocab_size_);
  if (!settings_.greedy()) chain_ = new_chain(random_seed());
}

void Sampler::set_seed(uint64_t seed) {
  if (settings_.greedy()) return;
  chain_ = new_chain(fold_seed(seed));
  seeded_ = true;
}

void Sampler::restart() {
  if (seeded_) llama_sampler_reset(chain_.get());
}

void Sampler::begin_generation() {
  if (grammar_) grammar_->restart();
  lost_ = false;
}

void Sampler::resume(const llama_token* generated, size_t count) {
  if (!lost_) return;
  if (grammar_) {
    grammar_->restart();
    for (size_t i = 0; i < count; ++i) grammar_->accept(generated[i]);
  }
  lost_ = false;
}

SamplerPtr Sampler::new_chain(uint32_t seed) const {
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
  return chain;
}

void Sampler::penalise(float* logits, const llama_token* context, size_t size) {
  penalised_.clear();
  if (settings_.repeat_penalty == 1.0f) return;
  const size_t window = std::min<size_t>(size, kRepeatPenaltyWindow);
  for (size_t i = size - window; i < size; ++i) {
    const llama_token token = context[i];
    const bool again = std::any_of(penalised_.begin(), penalised_.end(),
                                   [token](const Penalised& earlier) { return earlier.token == token; });
    if (again) continue;
    float& logit = logits[token];
    penalised_.push_back({token, logit});
    // Division alone would make a negative logit likelier; llama_sampler_init_penalties does the same.
    logit = logit <= 0 ? logit * settings_.repeat_penalty : logit / settings_.repeat_penalty;
  }
}

void Sampler::fill_candidates(const float* logits) {
  for (size_t i = 0; i < vocab_size_; ++i) candidates_[i] = {static_cast<llama_token>(i), logits[i], 0.0f};
}

llama_token Sampler::draw(llama_token_data* candidates, size_t count) {
  llama_token_data_array array = {candidates, count, /*selected=*/-1, /*sorted=*/false};
  llama_sampler_apply(chain_.get(), &array);
  const bool drawn = array.selected >= 0 && static_cast<size_t>(array.selected) < array.size;
  return array.data[drawn ? array.selected : 0].id;
}

// From the tokens that the grammar allows.
llama_token Sampler::draw_allowed(const float* logits) {
  // How many of the likeliest allowed tokens the draw can depend on.
  const size_t needed = settings_.greedy()    ? 1
                        : settings_.top_k > 0 ? std::min<size_t>(static_cast<size_t>(settings_.top_k), vocab_size_)
                                              : vocab_size_;
  const auto likelier = [](const llama_token_data& a, const llama_token_data& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  };
  // Growing heads of the vocabulary, ordered by likelihood, until enough of one is allowed.
  size_t looked_at = std::max<size_t>(256, 4 * needed);
  for (;; looked_at *= 16) {
    fill_candidates(logits);
    const auto begin = candidates_.begin();
    auto end = candidates_.end();
    const bool all = looked_at >= vocab_size_;
    if (!all) {
      end = begin + static_cast<std::ptrdiff_t>(looked_at);
      std::partial_sort(begin, end, candidates_.end(), likelier);
    }
    grammar_->restrict(candidates_.data(), static_cast<size_t>(end - begin));
    end = std::remove_if(begin, end, [](const llama_token_data& candidate) {
      return candidate.logit == -std::numeric_limits<float>::infinity();
    });
    const size_t allowed = static_cast<size_t>(end - begin);
    if (allowed < needed && !all) continue;
    if (allowed == 0) return LLAMA_TOKEN_NULL;
    if (settings_.greedy()) return std::min_element(begin, end, likelier)->id;
    return draw(candidates_.data(), allowed);
  }
}

void Sampler::forgive(float* logits) {
  for (const Penalised& was : penalised_) logits[was.token] = was.logit;
  penalised_.clear();
}

llama_token Sampler::sample(float* logits, const llama_token* context, size_t size) {
  try {
    penalise(logits, context, size);
    const llama_token token = choose(logits);
    forgive(logits);
    return token;
  } catch (...) {
    forgive(logits);
    throw;
  }
}

llama_token Sampler::choose(const float* logits) {
  llama_token token;
  if (settings_.greedy()) {
    token = argmax(logits, vocab_size_);
  } else {
    fill_candidates(logits);
    token = draw(candidates_.data(), vocab_size_);
  }
  if (grammar_) {
    if (!grammar_->allows(token)) token = draw_allowed(logits);
    if (token != LLAMA_TOKEN_NULL && !llama_vocab_is_eog(vocab_, token)) grammar_->accept(token);
  }
  return token;
}

}  // namespace eliza::llama_cpp
