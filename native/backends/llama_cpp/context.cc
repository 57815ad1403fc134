#include "native/backends/llama_cpp/context.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "native/backends/llama_cpp/runtime.h"
#include "native/base/error.h"
#include "native/text/quote.h"
#include "native/text/stream-checks.h"
#include "src/llama-ext.h"

namespace eliza::llama_cpp {
namespace {

constexpr llama_seq_id kSequence = 0;

[[noreturn]] void reject_model(const Model& model) {
  throw Error(ELIZA_ERR_BUNDLE_INVALID, "the model " + model.path() + " has the architecture '" +
                                            shown(model.header().architecture) +
                                            "', which does not generate text token by token; take a decoder model");
}

void check_generates(const Model& model) {
  const bool generates = llama_model_has_decoder(model.get()) && !llama_model_has_encoder(model.get()) &&
                         !llama_model_is_diffusion(model.get());
  if (!generates) reject_model(model);
}

// Without one, llama.cpp starts and ends its threads at every token. They wait awake for the next token for some tens
// of milliseconds, and then sleep: to be woken for each token would cost too much of it, and to spin for longer would
// take the cores from whoever consumes the text.
Context::Threadpool new_threadpool(int32_t threads) {
  if (threads <= 1) return nullptr;
  ggml_threadpool_params params = ggml_threadpool_params_default(threads);
  params.poll = 10;
  ggml_threadpool* const threadpool = ggml_threadpool_new(&params);
  return threadpool == nullptr ? nullptr : Context::Threadpool(threadpool, ggml_threadpool_free);
}

}  // namespace

Context::Context(std::shared_ptr<const Model> model, const Options& options, Threadpool threadpool)
    : model_(std::move(model)),
      options_(options),
      threadpool_(threadpool != nullptr ? std::move(threadpool) : new_threadpool(options.threads)),
      no_outputs_(kPrefillChunk, 0),
      all_outputs_(1 + options.max_drafts, 1) {
  check_generates(*model_);
  // Reserved, so that appending a token later cannot fail between two states.
  tokens_.reserve(options_.capacity);

  llama_context_params params = llama_context_default_params();
  params.n_ctx = options_.capacity;
  params.n_batch = kPrefillChunk;
  params.n_ubatch = kPrefillChunk;
  params.n_seq_max = 1;
  // llama.cpp sizes its work buffers for this many rows of logits; its default, one per token of a batch, is 512 MB for
  // a vocabulary of 262,144.
  params.n_outputs_max = 1 + options_.max_drafts;
  params.n_threads = options_.threads;
  params.n_threads_batch = options_.threads;
  params.type_k = options_.cache_types.k;
  params.type_v = options_.cache_types.v;
  // A window's worth of cells where the model has a window: a fraction of the memory, and of the time at long contexts.
  // truncate() checks what that leaves.
  params.swa_full = false;
  params.no_perf = true;
  params.abort_callback = [](void* self) { return static_cast<const Context*>(self)->cancelled(); };
  params.abort_callback_data = this;

  const CallScope scope;
  context_.reset(llama_init_from_model(model_->get(), params));
  if (context_ == nullptr) {
    const std::string reason = scope.reason();
    const bool memory = scope.out_of_memory();
    throw Error(memory ? ELIZA_ERR_OOM : ELIZA_ERR_FFI_FAULT,
                "llama.cpp cannot set up a context of " + std::to_string(options_.capacity) + " tokens for " +
                    model_->path() + " (" + reason + ")" + (memory ? "; try a smaller context_size" : ""));
  }
  if (llama_get_memory(context_.get()) == nullptr) reject_model(*model_);  // an embedding model
  if (options_.keep_hidden) llama_set_embeddings_nextn(context_.get(), /*value=*/true, /*masked=*/true);
  if (threadpool_ != nullptr) llama_attach_threadpool(context_.get(), threadpool_.get(), nullptr);
}

void Context::throw_if_cancelled() const {
  if (cancelled()) throw_cancelled();
  if (lost_) {
    throw Error(ELIZA_ERR_FFI_FAULT,
                "a call failed half-way, and the context was lost; reset the stream to use it again");
  }
}

// llama_decode, which takes back what it has put into the memory where it fails, but not where something throws: then
// there is no telling what is in there.
int32_t Context::run(const llama_batch& batch) {
  if (cancelled()) return 2;
  try {
    return checked_decode(context_.get(), batch, model_->path());
  } catch (...) {
    lose();
    throw;
  }
}

void Context::lose() {
  llama_memory_clear(llama_get_memory(context_.get()), /*data=*/false);
  tokens_.clear();
  decoded_ = 0;
  lost_ = true;
}

void Context::decode() {
  const CallScope scope;
  while (decoded_ < tokens_.size()) {
    const size_t count = std::min<size_t>(tokens_.size() - decoded_, kPrefillChunk);
    const bool last = decoded_ + count == tokens_.size();
    llama_batch batch = llama_batch_get_one(tokens_.data() + decoded_, static_cast<int32_t>(count));
    if (!last) batch.logits = no_outputs_.data();
    const int32_t status = run(batch);
    if (status == 0) {
      decoded_ += count;
      show_size(decoded_);
      continue;
    }
    resynchronise();
    throw_if_cancelled();
    throw Error(ELIZA_ERR_FFI_FAULT, "llama.cpp failed to decode " + std::to_string(count) + " tokens at position " +
                                         std::to_string(decoded_) + " with status " + std::to_string(status) + " (" +
                                         scope.reason() + "); reset the stream to use it again");
  }
}

void Context::decode_drafts(const std::vector<llama_token>& drafts) {
  const CallScope scope;
  const size_t before = tokens_.size();
  append(drafts.data(), drafts.size());
  const size_t count = tokens_.size() - decoded_;
  llama_batch batch = llama_batch_get_one(tokens_.data() + decoded_, static_cast<int32_t>(count));
  batch.logits = all_outputs_.data();
  const int32_t status = run(batch);
  if (status == 0) {
    decoded_ += count;
    return;
  }
  tokens_.resize(before);
  resynchronise();
  throw_if_cancelled();
  throw Error(ELIZA_ERR_FFI_FAULT, "llama.cpp failed to check " + std::to_string(drafts.size()) +
                                       " drafted tokens, with status " + std::to_string(status) + " (" +
                                       scope.reason() + "); reset the stream to use it again");
}

size_t Context::decode_prompt(const llama_token* tokens, size_t count) {
  const size_t most = std::min(tokens_.size(), count - 1);
  const size_t shared = static_cast<size_t>(std::mismatch(tokens, tokens + most, tokens_.begin()).first - tokens);
  const size_t kept = truncate(shared);
  append(tokens + kept, count - kept);
  decode();
  return kept;
}

const float* Context::hidden(int32_t row) const { return llama_get_embeddings_nextn_ith(context_.get(), row); }

float* Context::logits(int32_t row) const {
  float* logits = llama_get_logits_ith(context_.get(), row);
  if (logits == nullptr) {
    throw Error(ELIZA_ERR_FFI_FAULT, "llama.cpp has no logits for the last token; reset the stream");
  }
  return logits;
}

// Whether the memory holds all that a token at position `count` attends to, and nothing from there on.
bool Context::can_continue_at(size_t count) const {
  llama_memory_t memory = llama_get_memory(context_.get());
  const llama_pos end = static_cast<llama_pos>(count);
  const llama_pos window = std::max(0, llama_model_n_swa(model_->get()));
  const llama_pos needed = window > 0 ? std::max(0, end - window) : 0;
  return llama_memory_seq_pos_max(memory, kSequence) == end - 1 &&
         llama_memory_seq_pos_min(memory, kSequence) <= needed;
}

// Removes the positions from `count` on. False where the memory cannot go on from there: of a sliding window that no
// longer holds the positions before `count`, llama.cpp would say that it can, and continue without them.
bool Context::forget_after(size_t count) {
  return count > 0 &&
         llama_memory_seq_rm(llama_get_memory(context_.get()), kSequence, static_cast<llama_pos>(count), -1) &&
         can_continue_at(count);
}

size_t Context::truncate(size_t count) {
  count = std::min(count, tokens_.size());
  if (count < decoded_) {
    if (!forget_after(count)) {
      llama_memory_clear(llama_get_memory(context_.get()), /*data=*/false);
      count = 0;
    }
    decoded_ = count;
  }
  tokens_.resize(count);
  return count;
}

void Context::keep_first(size_t count) {
  if (count >= tokens_.size()) return;
  // truncate forgets the tokens with the memory, which is rare: not worth a copy at each step.
  tokens_.resize(count);
  if (count >= decoded_) return;
  decoded_ = count;
  if (forget_after(count)) return;
  llama_memory_clear(llama_get_memory(context_.get()), /*data=*/false);
  decoded_ = 0;
}

SlotIdentity Context::slot_identity() const {
  SlotIdentity identity;
  identity.model = model_->header().fingerprint;
  identity.runtime = LLAMA_STATE_SEQ_VERSION;
  for (const char c : std::string_view(llama_version())) {
    identity.runtime = identity.runtime * 31 + static_cast<unsigned char>(c);
  }
  identity.type_k = static_cast<uint32_t>(options_.cache_types.k);
  identity.type_v = static_cast<uint32_t>(options_.cache_types.v);
  return identity;
}

SavedContext Context::save() const {
  SavedContext saved;
  saved.tokens = tokens_;
  saved.decoded = decoded_;
  saved.visible = tokens_.size();
  if (decoded_ == 0) return saved;  // llama.cpp has failed on states of nothing (#9173, #14434)
  const CallScope scope;
  saved.state.resize(llama_state_seq_get_size(context_.get(), kSequence));
  const size_t size = llama_state_seq_get_data(context_.get(), saved.state.data(), saved.state.size(), kSequence);
  if (size != saved.state.size()) {
    throw Error(ELIZA_ERR_FFI_FAULT, "llama.cpp cannot save the state of the context (" + scope.reason() + ")");
  }
  return saved;
}

// Whether the memory is now that of `saved`.
bool Context::load(const SavedContext& saved) {
  const CallScope scope;
  try {
    llama_memory_clear(llama_get_memory(context_.get()), /*data=*/false);
    if (saved.decoded == 0) return saved.state.empty();
    const size_t size = llama_state_seq_set_data(context_.get(), saved.state.data(), saved.state.size(), kSequence);
    return size == saved.state.size() && can_continue_at(saved.decoded);
  } catch (const std::exception&) {  // an assertion that the state failed
    return false;
  }
}

void Context::restore(const SavedContext& saved) {
  if (saved.tokens.size() > options_.capacity) {
    throw Error(ELIZA_ERR_INVALID_ARG, "the slot holds " + std::to_string(saved.tokens.size()) +
                                           " tokens, more than this context's " + std::to_string(options_.capacity) +
                                           "; open the stream with a larger context_size. Nothing was restored");
  }
  const SavedContext before = save();
  if (!load(saved)) {
    if (!load(before)) {  // cannot be, since it has just been saved; but then nothing is what remains
      llama_memory_clear(llama_get_memory(context_.get()), /*data=*/false);
      tokens_.clear();
      decoded_ = 0;
    }
    throw Error(ELIZA_ERR_INVALID_ARG, "llama.cpp does not accept the slot's state; nothing was restored");
  }
  tokens_ = saved.tokens;
  tokens_.reserve(options_.capacity);
  decoded_ = saved.decoded;
}

// After a decode that failed half-way: what is in the memory is what counts.
void Context::resynchronise() {
  const llama_pos last = llama_memory_seq_pos_max(llama_get_memory(context_.get()), kSequence);
  const size_t held = last < 0 ? 0 : static_cast<size_t>(last) + 1;
  decoded_ = std::min(held, tokens_.size());
  truncate(decoded_);
}

}  // namespace eliza::llama_cpp
