#include "native/backends/mlx/decoder.h"

#include <algorithm>
#include <utility>

#include "mlx/memory.h"
#include "native/base/error.h"

namespace eliza::mlx {

Decoder::Decoder(const Model& model, const SamplingSettings& settings)
    : model_(model), sampler_(settings), caches_(model.new_caches()) {}

mx::array Decoder::last_logits(const mx::array& activations) const {
  const int count = activations.shape(1), width = activations.shape(2);
  const mx::array last = mx::slice(activations, {0, count - 1, 0}, {1, count, width});
  return mx::reshape(model_.logits(last), {model_.vocab_size()});
}

void Decoder::feed(const int32_t* tokens, size_t count, bool last) {
  logits_.reset();
  ahead_.reset();
  const mx::array ids(tokens, {1, static_cast<int>(count)}, mx::int32);
  const mx::array activations = model_.forward(ids, &caches_);
  std::vector<mx::array> arrays;
  for (const KvCache& cache : caches_) cache.append_arrays(&arrays);
  if (last) {
    logits_ = last_logits(activations);
    arrays.push_back(*logits_);
  }
  mx::eval(arrays);
  cached_ += count;
  if (count > 1) mx::clear_cache();  // a chunk's buffers are of no use to a step
}

// What a repeat penalty looks back on, with a token that is not known yet at its end.
std::optional<mx::array> Decoder::recent(const std::vector<int32_t>& context, const mx::array* token) const {
  if (!sampler_.penalises()) return std::nullopt;
  const size_t room = static_cast<size_t>(kRepeatPenaltyWindow) - (token != nullptr ? 1 : 0);
  const size_t count = std::min(context.size(), room);
  const mx::array known(context.data() + (context.size() - count), {static_cast<int>(count)}, mx::int32);
  return token == nullptr ? known : mx::concatenate({known, *token}, 0);
}

int32_t Decoder::choose(const std::vector<int32_t>& context, bool ahead) {
  if (!logits_ && !ahead_)
    throw Error(ELIZA_ERR_INVALID_ARG, "there is nothing to choose from: prefill a prompt first");
  const mx::array token = ahead_ ? ahead_->token : sampler_.sample(*logits_, draws_, recent(context, nullptr));
  logits_.reset();
  ahead_.reset();
  ++draws_;
  if (ahead) {
    const mx::array logits = last_logits(model_.forward(mx::reshape(token, {1, 1}), &caches_));
    ++cached_;
    ahead_ = Ahead{logits, sampler_.sample(logits, draws_, recent(context, &token))};
    mx::async_eval(ahead_->token, ahead_->logits);
  }
  mx::array known = token;
  return known.item<int32_t>();
}

bool Decoder::can_truncate(size_t count) const {
  return std::all_of(caches_.begin(), caches_.end(),
                     [count](const KvCache& cache) { return cache.can_truncate(static_cast<int>(count)); });
}

void Decoder::truncate(size_t count) {
  logits_.reset();
  ahead_.reset();
  for (KvCache& cache : caches_) cache.truncate(static_cast<int>(count));
  cached_ = std::min(cached_, count);
}

void Decoder::set_seed(uint64_t seed) {
  sampler_.set_seed(seed);
  draws_ = 0;
  // What was chosen with another seed is chosen again.
  if (ahead_) logits_ = ahead_->logits;
  ahead_.reset();
}

void Decoder::restart_sampler() {
  sampler_.restart();
  draws_ = 0;
}

void Decoder::restore(std::vector<KvCache> caches, size_t cached) {
  logits_.reset();
  ahead_.reset();
  caches_ = std::move(caches);
  cached_ = cached;
}

}  // namespace eliza::mlx
