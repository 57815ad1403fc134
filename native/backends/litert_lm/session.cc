#include "native/backends/litert_lm/session.h"

#include <algorithm>
#include <random>
#include <utility>

#include "native/backends/litert_lm/bounded.h"
#include "native/base/error.h"
#include "native/base/stopwatch.h"
#include "native/base/strings.h"
#include "native/text/stream-checks.h"

namespace eliza::litert_lm {
namespace {

// Tokens that are prefilled at once: what a cancel waits for.
constexpr size_t kPrefillChunk = 512;

constexpr char kContextFull[] = "Max number of tokens reached";  // how the runtime says it

// What was asked for, only tunes, and is not there.
std::vector<std::string> ignored_options(const eliza_llm_stream_config_t& config) {
  std::vector<std::string> ignored;
  if (sampling_settings(config).repeat_penalty != 1.0f) ignored.push_back("repeat_penalty");
  if (is_set(config.prompt_cache_key)) ignored.push_back("prompt_cache_key");
  if (config.draft_max > 0) ignored.push_back("draft_max");
  if (config.n_gpu_layers != 0) ignored.push_back("n_gpu_layers");
  if (is_set(config.cache_type_k)) ignored.push_back("cache_type_k");
  if (is_set(config.cache_type_v)) ignored.push_back("cache_type_v");
  return ignored;
}

int32_t runtime_seed(uint64_t seed) { return static_cast<int32_t>((seed ^ (seed >> 32)) & 0x7FFFFFFF); }

}  // namespace

Session::Session(std::shared_ptr<const Engine> engine, const eliza_llm_stream_config_t& config)
    : engine_(std::move(engine)), max_tokens_(config.max_tokens), ignored_options_(ignored_options(config)) {
  options_.sampling = sampling_settings(config);
  options_.seed = runtime_seed(std::random_device()());
  options_.max_tokens = max_tokens_;
  options_.limit = wait_limit();
}

void Session::throw_if_cancelled() const {
  if (*cancelled_) throw_cancelled();
}

// The runtime's position behind the first `num_tokens` tokens.
size_t Session::steps(size_t num_tokens) const { return num_tokens + added_; }

void Session::check_room(size_t num_tokens) const {
  const auto capacity = static_cast<size_t>(engine_->capacity());
  if (capacity == 0) return;                      // then the runtime tells
  const size_t used = steps(tokens_.size()) + 1;  // it fills no context with a prompt to the last token
  eliza::check_room(num_tokens, capacity > used ? capacity - used : 0, capacity);
}

// How many of the first ids are the start tokens that the runtime puts there itself.
size_t Session::start_size(const int32_t* token_ids, size_t num_tokens) const {
  const std::vector<int32_t>& start = engine_->vocabulary().start();
  const bool given = num_tokens >= start.size() && std::equal(start.begin(), start.end(), token_ids);
  return given ? start.size() : 0;
}

// So that noting them later, when they have been given, cannot fail.
void Session::make_room(size_t num_tokens) {
  const size_t needed = tokens_.size() + num_tokens;
  if (needed > tokens_.capacity()) tokens_.reserve(std::max(needed, 2 * tokens_.capacity()));
}

void Session::feed(const std::vector<Spelling>& spellings, bool first) {
  if (spellings.empty() && first) runtime_->prefill("");  // start tokens alone
  for (const Spelling& spelling : spellings) {
    throw_if_cancelled();
    runtime_->prefill(spelling.text);
  }
}

// Makes the runtime's context what the caller knows as the context.
void Session::ready() {
  const bool usable = runtime_ != nullptr && !reseeded_ && runtime_->end_generation() &&
                      (!ahead_ || runtime_->rewind(steps(tokens_.size())));
  ahead_ = false;
  reseeded_ = false;
  if (usable) return;
  runtime_.reset();
  runtime_ = std::make_unique<RuntimeSession>(engine_, options_, cancelled_);
  if (tokens_.empty()) return;
  try {
    const size_t first = start_size(tokens_.data(), tokens_.size());
    feed(spell(engine_->vocabulary(), tokens_.data(), first, tokens_.size(), kPrefillChunk), /*first=*/true);
  } catch (...) {
    runtime_.reset();  // it has a part of it
    throw;
  }
}

int Session::prefill(const int32_t* token_ids, size_t num_tokens, char** out_error) {
  return guard(out_error, [&] {
    throw_if_cancelled();
    check_prompt(token_ids, num_tokens, engine_->vocabulary().size());
    const bool first = tokens_.empty();
    const size_t bos = first ? start_size(token_ids, num_tokens) : 0;
    const size_t added = first && bos == 0 ? engine_->vocabulary().start().size() : 0;
    check_room(num_tokens + added);
    const std::vector<Spelling> spellings = spell(engine_->vocabulary(), token_ids, bos, num_tokens, kPrefillChunk);
    make_room(num_tokens);
    const Stopwatch stopwatch(&counters_.prefill_ms);
    stream_.reset();
    decoded_.clear();
    ready();
    try {
      feed(spellings, first);
      throw_if_cancelled();
    } catch (...) {
      // A cancel behind a part leaves it alive, with some of them.
      ahead_ = true;
      if (!*cancelled_) runtime_.reset();
      throw;
    }
    if (first) added_ = added;
    tokens_.insert(tokens_.end(), token_ids, token_ids + num_tokens);
    counters_.prompt_tokens += static_cast<int64_t>(num_tokens);
    stream_.begin(max_tokens_);
    return ELIZA_OK;
  });
}

int Session::next(int32_t* tokens_out, size_t tokens_cap, size_t* num_tokens_out, char* text_out, size_t text_cap,
                  int32_t* drafter_drafted_out, int32_t* drafter_accepted_out, char** out_error) {
  return guard(out_error, [&] {
    throw_if_cancelled();
    const Stopwatch stopwatch(&counters_.decode_ms);
    const int status = stream_.next(tokens_out, tokens_cap, num_tokens_out, text_out, text_cap, drafter_drafted_out,
                                    drafter_accepted_out);
    if (*cancelled_) throw_cancelled_step(num_tokens_out, text_out);
    tokens_.insert(tokens_.end(), tokens_out, tokens_out + *num_tokens_out);
    counters_.generated_tokens += static_cast<int64_t>(*num_tokens_out);
    return status;
  });
}

// Puts what the runtime pushes next into decoded_; says why there is nothing more.
StopReason Session::pull() {
  if (!runtime_->decoding()) {
    ahead_ = true;
    limit_step_ = steps(tokens_.size()) + static_cast<size_t>(max_tokens_);
    runtime_->decode();
  }
  const Generation::Chunk chunk = runtime_->next();
  throw_if_cancelled();
  if (chunk.text) {
    append_generated(engine_->vocabulary(), *chunk.text, &decoded_);
    return StopReason::kNone;
  }
  if (chunk.error.empty()) {
    // The runtime does not tell the two ends apart, but its context does: it is as long as max_tokens makes it. (It
    // drops a last token that could have begun one of the model's stop sequences.)
    const bool used_up = max_tokens_ > 0 && runtime_->has_reached(limit_step_);
    return used_up ? StopReason::kMaxTokens : StopReason::kEndOfGeneration;
  }
  if (chunk.error.find(kContextFull) != std::string::npos) return StopReason::kContextFull;
  throw Error(ELIZA_ERR_FFI_FAULT,
              "LiteRT-LM failed while it generated (" + chunk.error + "); reset the stream to try again");
}

TokenSource::Step Session::step(size_t limit, std::vector<DecodedToken>* out) {
  Step step;
  if (decoded_.empty()) {
    if (runtime_ == nullptr || reseeded_) ready();
    try {
      step.stop = pull();
    } catch (...) {
      if (!*cancelled_) runtime_.reset();
      throw;
    }
  }
  const size_t count = std::min(limit, decoded_.size());
  make_room(out->size() + count);
  out->reserve(out->size() + count);
  const auto end = decoded_.begin() + static_cast<std::ptrdiff_t>(count);
  std::move(decoded_.begin(), end, std::back_inserter(*out));
  decoded_.erase(decoded_.begin(), end);
  return step;
}

int Session::cancel() {
  *cancelled_ = true;
  engine_->floor()->wake();
  return ELIZA_OK;
}

void Session::restart() {
  stream_.reset();
  decoded_.clear();
  counters_ = {};
  *cancelled_ = false;
}

int Session::reset() {
  return guard(nullptr, [&] {
    // Another one, for a sampler that starts again: the runtime's keeps its state over a rewind.
    runtime_.reset();
    ahead_ = false;
    tokens_.clear();
    added_ = 0;
    restart();
    return ELIZA_OK;
  });
}

int Session::reset_keep(int32_t n_keep) {
  const size_t keep = std::min(static_cast<size_t>(std::max(0, n_keep)), tokens_.size());
  const int kept = guard(nullptr, [&] {
    if (keep == 0 || runtime_ == nullptr || !runtime_->end_generation()) return 0;
    *cancelled_ = false;
    return runtime_->rewind(steps(keep)) ? static_cast<int>(keep) : 0;
  });
  if (kept <= 0) {
    reset();
    return 0;
  }
  ahead_ = false;
  tokens_.resize(keep);
  restart();
  return kept;
}

int Session::set_seed(uint64_t seed) {
  options_.seed = runtime_seed(seed);
  // A session of the runtime is made with its seed: the next use takes another one.
  reseeded_ = !options_.sampling.greedy();
  return ELIZA_OK;
}

LlmSessionStats Session::stats() const {
  LlmSessionStats stats = counters_;
  stats.device = engine_->device();
  stats.stop_reason = *cancelled_ ? "cancelled" : stop_reason_name(stream_.stop_reason());
  stats.kv_used = tokens_.empty() ? 0 : static_cast<int64_t>(steps(tokens_.size()));
  stats.kv_capacity = engine_->capacity();
  stats.ignored_options = ignored_options_;
  return stats;
}

}  // namespace eliza::litert_lm
