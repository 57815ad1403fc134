#include "native/backends/llama_cpp/session.h"

#include <algorithm>
#include <utility>

#include "native/backends/llama_cpp/tokenizer.h"
#include "native/base/cpu-topology.h"
#include "native/base/error.h"
#include "native/base/stopwatch.h"
#include "native/base/strings.h"
#include "native/text/context-size.h"
#include "native/text/stream-checks.h"

namespace eliza::llama_cpp {
namespace {

// For the one thread that counts: no other writes.
template <typename T>
void add(std::atomic<T>* counter, T value) {
  counter->store(counter->load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
}

template <typename T>
T read(const std::atomic<T>& counter) {
  return counter.load(std::memory_order_relaxed);
}

Context::Options context_options(const Model& model, const eliza_llm_stream_config_t& config,
                                 int32_t manifest_context_size) {
  Context::Options options;
  options.threads = default_threads();
  options.cache_types = cache_types(model, config.cache_type_k, config.cache_type_v);
  options.capacity = context_size(model, context_size_of(config), manifest_context_size, options.cache_types);
  return options;
}

bool drafts(const eliza_llm_stream_config_t& config) { return config.draft_max > 0 && is_set(config.mtp_drafter_path); }

// What was asked for, only tunes, and is not there.
std::vector<std::string> ignored_options(const eliza_llm_stream_config_t& config, const Model& model) {
  std::vector<std::string> ignored;
  if (config.n_gpu_layers != 0 && !model.on_gpu()) ignored.push_back("n_gpu_layers");
  if (config.draft_max > 0 && !drafts(config)) ignored.push_back("draft_max");  // there is nothing to draft with
  return ignored;
}

}  // namespace

// On the GPU where the model that it drafts for is: an MTP drafter reads that one's KV cache.
std::shared_ptr<const Model> acquire_drafter(const eliza_llm_stream_config_t& config, const std::string& bundle_dir,
                                             const Model& model, const StopFlag* stop) {
  if (!drafts(config)) return nullptr;
  if (config.draft_max >= static_cast<int32_t>(kPrefillChunk)) {
    throw Error(ELIZA_ERR_INVALID_ARG, "draft_max is " + std::to_string(config.draft_max) + "; at most " +
                                           std::to_string(kPrefillChunk - 1) +
                                           " tokens are drafted in a step (more than 16 seldom pay)");
  }
  const std::string path = config.mtp_drafter_path;
  const bool relative = path.front() != '/' && !bundle_dir.empty();
  return acquire_model(relative ? bundle_dir + "/" + path : path, model.on_gpu() ? config.n_gpu_layers : 0, stop);
}

void Session::Counters::clear() {
  for (std::atomic<int64_t>* count :
       {&prompt_tokens, &reused_tokens, &generated_tokens, &drafted_tokens, &accepted_tokens}) {
    count->store(0, std::memory_order_relaxed);
  }
  for (std::atomic<double>* time : {&prefill_ms, &decode_ms}) time->store(0, std::memory_order_relaxed);
}

// Shows to other threads, at the end of a call, what it has changed.
class Session::Showing {
 public:
  explicit Showing(Session* session) : session_(session) {}
  ~Showing() {
    // For the caller, a warm context is an empty one until its first prefill.
    session_->context_->show_size(session_->warm_ ? 0 : session_->context_->tokens().size());
    session_->counters_.stop_reason.store(session_->stream_.stop_reason(), std::memory_order_relaxed);
  }
  Showing(const Showing&) = delete;
  Showing& operator=(const Showing&) = delete;

 private:
  Session* const session_;
};

Session::Session(std::shared_ptr<const Model> model, const eliza_llm_stream_config_t& config,
                 int32_t manifest_context_size, SessionServices services)
    : model_(std::move(model)),
      max_tokens_(config.max_tokens),
      services_(std::move(services)),
      ignored_options_(ignored_options(config, *model_)),
      sampler_(model_->vocab(), sampling_settings(config), config.gbnf_grammar == nullptr ? "" : config.gbnf_grammar) {
  if (config.prompt_cache_key != nullptr && config.slot_id >= 0) {
    if (services_.warm_cache != nullptr) {
      warm_key_ = {config.prompt_cache_key, config.slot_id};
    } else {
      ignored_options_.push_back("prompt_cache_key");
    }
  }
  Context::Options options = context_options(*model_, config, manifest_context_size);
  std::shared_ptr<const Model> drafter = std::move(services_.drafter);
  if (drafter != nullptr) {
    draft_min_ = static_cast<size_t>(config.draft_min);
    draft_max_ = static_cast<size_t>(config.draft_max);
    options.max_drafts = static_cast<uint32_t>(draft_max_);
    options.keep_hidden = is_mtp_drafter(*drafter);
  }
  open_context(options);
  if (drafter != nullptr) drafter_ = make_drafter(std::move(drafter), *context_);
}

Session::~Session() {
  drafter_.reset();
  if (!warm_key_ || context_ == nullptr) return;
  try {
    context_->clear_cancel();
    services_.warm_cache->put(*warm_key_, std::move(context_));
  } catch (const std::exception&) {
    // Then the next session with this key starts cold.
  }
}

void Session::open_context(const Context::Options& options) {
  if (warm_key_) context_ = services_.warm_cache->take(*warm_key_, *model_, options);
  warm_ = context_ != nullptr;
  if (!warm_) context_ = std::make_unique<Context>(model_, options);
  const Showing showing(this);
}

int Session::prefill(const int32_t* token_ids, size_t num_tokens, char** out_error) {
  return guard(out_error, [&] {
    const Showing showing(this);
    context_->throw_if_cancelled();
    check_prompt(token_ids, num_tokens, llama_vocab_n_tokens(model_->vocab()));
    check_room(num_tokens, warm_ ? context_->capacity() : context_->room() + undelivered(), context_->capacity());
    sampler_.begin_generation();  // first: a grammar may be too much to follow
    drop_undelivered();
    const Stopwatch stopwatch(&counters_.prefill_ms);
    if (warm_) {
      warm_ = false;
      add(&counters_.reused_tokens, static_cast<int64_t>(context_->decode_prompt(token_ids, num_tokens)));
    } else {
      context_->append(token_ids, num_tokens);
      context_->decode();
    }
    context_->throw_if_cancelled();  // a cancel of the last chunk
    if (drafter_ != nullptr) drafter_->prefilled();
    add(&counters_.prompt_tokens, static_cast<int64_t>(num_tokens));
    generation_ = 0;
    stream_.begin(max_tokens_);
    return ELIZA_OK;
  });
}

int Session::next(int32_t* tokens_out, size_t tokens_cap, size_t* num_tokens_out, char* text_out, size_t text_cap,
                  int32_t* drafter_drafted_out, int32_t* drafter_accepted_out, char** out_error) {
  return guard(out_error, [&] {
    const Showing showing(this);
    context_->throw_if_cancelled();
    const Stopwatch stopwatch(&counters_.decode_ms);
    const int status = stream_.next(tokens_out, tokens_cap, num_tokens_out, text_out, text_cap, drafter_drafted_out,
                                    drafter_accepted_out);
    if (context_->cancelled()) throw_cancelled_step(num_tokens_out, text_out);
    add(&counters_.generated_tokens, static_cast<int64_t>(*num_tokens_out));
    return status;
  });
}

// Takes a sampled token into the context and hands it out; false where the generation has ended instead.
bool Session::deliver(llama_token token, Step* step, std::vector<DecodedToken>* out) {
  // A grammar that allows nothing more ends a generation, too: it is complete, or there is no token for the rest.
  if (token == LLAMA_TOKEN_NULL || llama_vocab_is_eog(model_->vocab(), token)) {
    step->stop = StopReason::kEndOfGeneration;
    return false;
  }
  out->push_back({token, token_piece(model_->vocab(), token)});
  ++generation_;
  return true;
}

TokenSource::Step Session::step(size_t limit, std::vector<DecodedToken>* out) {
  Step step;
  // A prompt that fills the context leaves logits for one token, which then has no room in it.
  if (context_->room() == 0 && generation_ > 0) {
    step.stop = StopReason::kContextFull;
    return step;
  }
  // Right after a prefill, the logits for the first token are there already.
  const bool tail = context_->decoded() + 1 == context_->tokens().size();
  const size_t generated = std::min(static_cast<size_t>(generation_), context_->tokens().size());
  try {
    sampler_.resume(context_->tokens().data() + (context_->tokens().size() - generated), generated);
    step = drafter_ != nullptr && tail ? speculative_step(limit, out) : plain_step(out);
  } catch (...) {
    sampler_.lose_place();
    throw;
  }
  if (step.stop == StopReason::kNone && context_->room() == 0) step.stop = StopReason::kContextFull;
  return step;
}

TokenSource::Step Session::plain_step(std::vector<DecodedToken>* out) {
  Step step;
  context_->decode();
  const llama_token token = sampler_.sample(context_->logits(), context_->tokens().data(), context_->tokens().size());
  if (!deliver(token, &step, out)) return step;
  overflowed_ = context_->room() == 0;
  if (!overflowed_) context_->append(&token, 1);
  return step;
}

// Drafts, and goes through the drafts as long as the sampler, with the target's logits, makes the same choice. Its
// first other choice, or the one after the last draft, is one token more.
TokenSource::Step Session::speculative_step(size_t limit, std::vector<DecodedToken>* out) {
  Step step;
  drafts_.clear();
  // Room for each draft and for the token after them.
  const size_t most = std::min({draft_max_, limit - 1, context_->room() - 1});
  if (most > 0) drafter_->draft(most, &drafts_);
  if (drafts_.size() < draft_min_) drafts_.clear();
  const size_t base = context_->tokens().size();
  const int64_t first = generation_;
  context_->decode_drafts(drafts_);

  size_t accepted = 0;
  llama_token token;
  try {
    for (;; ++accepted) {
      token =
          sampler_.sample(context_->logits(static_cast<int32_t>(accepted)), context_->tokens().data(), base + accepted);
      if (!deliver(token, &step, out) || accepted == drafts_.size() || token != drafts_[accepted]) break;
    }
  } catch (...) {
    // Drafts that nobody has looked at may not stay in the context, nor tokens be delivered that are not in it. The
    // last token is decoded again: the logits that are there are those after the drafts.
    const llama_token last = context_->tokens()[base - 1];
    context_->keep_first(base - 1);
    context_->append(&last, 1);
    out->clear();
    generation_ = first;
    throw;
  }
  drafter_->decoded(static_cast<int32_t>(accepted));
  context_->keep_first(base + accepted);
  const bool ended = step.stop != StopReason::kNone;
  if (!ended) context_->append(&token, 1);

  step.drafted = static_cast<int32_t>(drafts_.size());
  step.accepted = static_cast<int32_t>(accepted);
  add<int64_t>(&counters_.drafted_tokens, step.drafted);
  add<int64_t>(&counters_.accepted_tokens, step.accepted);
  if (services_.verifier != nullptr && !drafts_.empty()) {
    services_.verifier->report(drafts_, accepted, first, ended ? LLAMA_TOKEN_NULL : token);
  }
  return step;
}

// The caller never saw tokens that wait for a larger buffer: for it, they are not in the context.
size_t Session::undelivered() const {
  const size_t waiting = stream_.waiting();
  return overflowed_ && waiting > 0 ? waiting - 1 : waiting;
}

// Also from the stream, or they would be taken away once more, and handed out, where what comes next fails.
void Session::drop_undelivered() {
  context_->keep_first(context_->tokens().size() - undelivered());
  stream_.reset();
  overflowed_ = false;
}

int Session::cancel() {
  context_->cancel();
  return ELIZA_OK;
}

void Session::restart(size_t n_keep) {
  // For the caller, a warm context is an empty one until its first prefill.
  context_->truncate(warm_ ? 0 : n_keep);
  warm_ = false;
  overflowed_ = false;
  stream_.reset();
  counters_.clear();
  context_->clear_cancel();
  sampler_.restart();
}

int Session::reset() {
  return guard(nullptr, [&] {
    const Showing showing(this);
    restart(0);
    return ELIZA_OK;
  });
}

int Session::reset_keep(int32_t n_keep) {
  const Showing showing(this);
  const int kept = guard(nullptr, [&] {
    drop_undelivered();
    restart(static_cast<size_t>(std::max(0, n_keep)));
    return static_cast<int>(context_->tokens().size());
  });
  if (kept < 0) context_->truncate(0);  // then 0 is the truth
  return std::max(kept, 0);
}

int Session::save_slot(const char* filename, char** out_error) {
  return guard(out_error, [&] {
    const Showing showing(this);
    context_->throw_if_cancelled();
    SavedContext saved = warm_ ? SavedContext() : context_->save();
    saved.visible -= undelivered();
    write_slot_file(filename, context_->slot_identity(), saved);
    return ELIZA_OK;
  });
}

int Session::restore_slot(const char* filename, char** out_error) {
  return guard(out_error, [&] {
    const Showing showing(this);
    context_->throw_if_cancelled();
    const SavedContext saved = read_slot_file(filename, context_->slot_identity());
    check_tokens(model_->vocab(), saved.tokens.data(), saved.tokens.size());
    context_->restore(saved);
    warm_ = false;
    restart(saved.visible);
    return ELIZA_OK;
  });
}

int Session::set_seed(uint64_t seed) {
  return guard(nullptr, [&] {
    sampler_.set_seed(seed);
    return ELIZA_OK;
  });
}

LlmSessionStats Session::stats() const {
  LlmSessionStats stats;
  stats.device = model_->device();
  stats.stop_reason = context_->cancelled() ? "cancelled" : stop_reason_name(read(counters_.stop_reason));
  stats.prompt_tokens = read(counters_.prompt_tokens);
  stats.reused_tokens = read(counters_.reused_tokens);
  stats.generated_tokens = read(counters_.generated_tokens);
  stats.drafted_tokens = read(counters_.drafted_tokens);
  stats.accepted_tokens = read(counters_.accepted_tokens);
  stats.kv_used = static_cast<int64_t>(context_->shown_size());
  stats.kv_capacity = static_cast<int64_t>(context_->capacity());
  stats.prefill_ms = read(counters_.prefill_ms);
  stats.decode_ms = read(counters_.decode_ms);
  stats.ignored_options = ignored_options_;
  return stats;
}

}  // namespace eliza::llama_cpp
