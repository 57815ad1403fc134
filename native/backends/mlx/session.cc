#include "native/backends/mlx/session.h"

#include <algorithm>
#include <new>
#include <string_view>
#include <utility>

#include "native/backends/mlx/slot.h"
#include "native/base/error.h"
#include "native/base/slot-bytes.h"
#include "native/base/stopwatch.h"
#include "native/base/strings.h"
#include "native/text/context-size.h"
#include "native/text/sampling.h"
#include "native/text/stream-checks.h"
#include "native/text/token-ids.h"

namespace eliza::mlx {
namespace {

// What was asked for, only tunes, and is not there.
std::vector<std::string> ignored_options(const eliza_llm_stream_config_t& config, Device device) {
  std::vector<std::string> ignored;
  // All layers are on the device, whichever it is.
  if (device == Device::kCpu ? config.n_gpu_layers != 0 : config.n_gpu_layers > 0) ignored.push_back("n_gpu_layers");
  if (config.draft_max > 0) ignored.push_back("draft_max");
  if (is_set(config.cache_type_k)) ignored.push_back("cache_type_k");
  if (is_set(config.cache_type_v)) ignored.push_back("cache_type_v");
  if (config.prompt_cache_key != nullptr && config.slot_id >= 0) ignored.push_back("prompt_cache_key");
  return ignored;
}

}  // namespace

ContextWish context_wish(const eliza_llm_stream_config_t& config, int32_t manifest_size) {
  ContextWish wish;
  wish.config_size = context_size_of(config);
  wish.manifest_size = manifest_size;
  return wish;
}

Session::Session(std::shared_ptr<const LoadedModel> model, const eliza_llm_stream_config_t& config,
                 const ContextWish& context, Pieces pieces)
    : model_(std::move(model)),
      pieces_(std::move(pieces)),
      max_tokens_(config.max_tokens),
      capacity_(model_->context_size(context)),
      ignored_options_(ignored_options(config, model_->device())),
      decoder_(std::make_unique<Decoder>(model_->model(), sampling_settings(config))) {}

Session::~Session() {
  // Arrays end on the thread that they belong to.
  model_->worker().run([this] { decoder_.reset(); });
}

// Runs `body` on the model's thread. Where MLX fails, nobody knows what the caches hold: the context is lost.
template <typename Body>
auto Session::compute(Body&& body) {
  try {
    return model_->worker().run(body);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    model_->worker().run([this] { decoder_->truncate(0); });
    tokens_.clear();
    stream_.reset();
    const bool memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
    throw Error(memory ? ELIZA_ERR_OOM : ELIZA_ERR_FFI_FAULT,
                std::string("MLX failed (") + error.what() + "); the stream's context is lost: prefill it again");
  }
}

void Session::throw_if_cancelled() const {
  if (cancelled_) throw_cancelled();
}

// Computes what of the context has not been, a chunk at a time. Between two chunks other streams of the model get their
// turn, and a cancel is noticed. `last`: a choice follows.
void Session::feed(bool last) {
  while (decoder_->cached() < tokens_.size()) {
    throw_if_cancelled();
    const size_t begin = decoder_->cached();
    const size_t count = std::min<size_t>(tokens_.size() - begin, kPrefillChunk);
    const bool at_end = begin + count == tokens_.size();
    compute([&] { decoder_->feed(tokens_.data() + begin, count, last && at_end); });
  }
}

int Session::prefill(const int32_t* token_ids, size_t num_tokens, char** out_error) {
  return guard(out_error, [&] {
    throw_if_cancelled();
    check_prompt(token_ids, num_tokens, model_->model().vocab_size());
    check_room(num_tokens, capacity_ - tokens_.size() + stream_.waiting(), capacity_);
    drop_undelivered();
    const Stopwatch stopwatch(&counters_.prefill_ms);
    tokens_.insert(tokens_.end(), token_ids, token_ids + num_tokens);
    try {
      feed(/*last=*/true);
    } catch (const Error&) {
      tokens_.resize(decoder_->cached());  // what was computed stays
      throw;
    }
    throw_if_cancelled();  // a cancel of the last chunk
    counters_.prompt_tokens += static_cast<int64_t>(num_tokens);
    generation_ = 0;
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
    if (cancelled_) throw_cancelled_step(num_tokens_out, text_out);
    counters_.generated_tokens += static_cast<int64_t>(*num_tokens_out);
    return status;
  });
}

TokenSource::Step Session::step(size_t, std::vector<DecodedToken>* out) {
  Step step;
  if (tokens_.size() >= capacity_) {
    step.stop = StopReason::kContextFull;
    return step;
  }
  feed(/*last=*/true);  // nothing, but after a token that was thought to be the last
  // The next one is computed while the caller reads this one, unless nobody will ask for it.
  const bool last_wanted = max_tokens_ > 0 && generation_ + 1 >= max_tokens_;
  const bool ahead = !last_wanted && tokens_.size() + 1 < capacity_;
  const int32_t token = compute([&] { return decoder_->choose(tokens_, ahead); });
  if (model_->ends_generation(token)) {
    compute([&] { decoder_->truncate(tokens_.size()); });  // it is no part of the context
    step.stop = StopReason::kEndOfGeneration;
    return step;
  }
  const size_t before = tokens_.size();
  try {
    tokens_.push_back(token);
    out->push_back({token, pieces_(token)});
  } catch (...) {
    // The caches may hold it, and the one after it be chosen: the next call is to choose this one again.
    tokens_.resize(before);
    compute([&] { decoder_->truncate(decoder_->can_truncate(before - 1) ? before - 1 : 0); });
    throw;
  }
  ++generation_;
  if (tokens_.size() >= capacity_) step.stop = StopReason::kContextFull;
  return step;
}

// The first `count` tokens of the context, which the caches can always be cut to: one less than there are at most.
void Session::keep_first(size_t count) {
  if (count < tokens_.size()) compute([&] { decoder_->truncate(count); });
  tokens_.resize(std::min(count, tokens_.size()));
}

// The caller never saw tokens that wait for a larger buffer: for it, they are not in the context.
// Also from the stream, or they would be taken away once more, and handed out, where what comes next fails.
void Session::drop_undelivered() {
  keep_first(tokens_.size() - stream_.waiting());
  stream_.reset();
}

int Session::cancel() {
  cancelled_ = true;
  return ELIZA_OK;
}

void Session::restart(size_t n_keep) {
  const size_t keep = std::min(n_keep, tokens_.size());
  const size_t kept = compute([&] {
    const size_t possible = decoder_->can_truncate(keep) ? keep : 0;
    decoder_->truncate(possible);
    decoder_->restart_sampler();
    return possible;
  });
  tokens_.resize(kept);
  stream_.reset();
  counters_ = {};
  generation_ = 0;
  cancelled_ = false;
}

int Session::reset() {
  return guard(nullptr, [&] {
    restart(0);
    return ELIZA_OK;
  });
}

int Session::reset_keep(int32_t n_keep) {
  const int status = guard(nullptr, [&] {
    drop_undelivered();
    restart(static_cast<size_t>(std::max(0, n_keep)));
    return static_cast<int>(tokens_.size());
  });
  return std::max(status, 0);
}

int Session::save_slot(const char* filename, char** out_error) {
  return guard(out_error, [&] {
    throw_if_cancelled();
    const std::string bytes = compute([&] {
      SavedStream saved;
      saved.tokens = tokens_;
      saved.cached = decoder_->cached();
      saved.visible = tokens_.size() - stream_.waiting();
      saved.caches = decoder_->caches();
      return slot_bytes(model_->fingerprint(), saved);
    });
    write_slot_bytes(filename, {{bytes.data(), bytes.size()}});
    return ELIZA_OK;
  });
}

int Session::restore_slot(const char* filename, char** out_error) {
  return guard(out_error, [&] {
    throw_if_cancelled();
    SlotFile file = read_slot(filename, model_->fingerprint());
    if (file.num_tokens > capacity_) {
      throw Error(ELIZA_ERR_INVALID_ARG, "the slot holds " + std::to_string(file.num_tokens) +
                                             " tokens, more than this context's " + std::to_string(capacity_) +
                                             "; open the stream with a larger context_size");
    }
    // Not through compute: whatever fails in there, this stream's context is untouched.
    SavedStream saved = model_->worker().run([&] {
      SavedStream opened =
          open_slot(filename, std::move(file), model_->model().cache_shapes(), model_->model().dtype());
      check_token_ids(opened.tokens.data(), opened.tokens.size(), model_->model().vocab_size());
      return opened;
    });
    model_->worker().run([&] { decoder_->restore(std::move(saved.caches), saved.cached); });
    tokens_ = std::move(saved.tokens);
    restart(saved.visible);
    return ELIZA_OK;
  });
}

int Session::set_seed(uint64_t seed) {
  return guard(nullptr, [&] {
    compute([&] { decoder_->set_seed(seed); });
    return ELIZA_OK;
  });
}

LlmSessionStats Session::stats() const {
  LlmSessionStats stats = counters_;
  stats.device = device_name(model_->device());
  stats.stop_reason = cancelled_ ? "cancelled" : stop_reason_name(stream_.stop_reason());
  stats.kv_used = static_cast<int64_t>(tokens_.size());
  stats.kv_capacity = static_cast<int64_t>(capacity_);
  stats.ignored_options = ignored_options_;
  return stats;
}

}  // namespace eliza::mlx
