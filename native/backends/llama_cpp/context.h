// A llama_context and what is in it: the tokens of one sequence, in order, and how many of them are decoded.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "ggml-cpu.h"
#include "llama.h"
#include "native/backends/llama_cpp/kv-cache.h"
#include "native/backends/llama_cpp/model-cache.h"
#include "native/backends/llama_cpp/owned.h"
#include "native/backends/llama_cpp/slot-file.h"

namespace eliza::llama_cpp {

// One thread at a time, except cancel.
//
// The context holds tokens() in order. The first decoded() of them are in llama.cpp's memory; a token that was just
// sampled is appended without being decoded, and decoded together with what comes next (the lazy tail), so that ending
// a generation costs nothing and a following prefill is one batch.
class Context {
 public:
  struct Options {
    uint32_t capacity = 0;  // tokens
    CacheTypes cache_types;
    int32_t threads = 1;
    uint32_t max_drafts = 0;   // tokens that one decode_drafts may get
    bool keep_hidden = false;  // keep the hidden states an MTP drafter goes on from

    bool operator==(const Options& other) const {
      return capacity == other.capacity && cache_types.k == other.cache_types.k &&
             cache_types.v == other.cache_types.v && threads == other.threads && max_drafts == other.max_drafts &&
             keep_hidden == other.keep_hidden;
    }
  };

  // Worker threads, which several contexts may have in common as long as one of them decodes at a time.
  using Threadpool = std::shared_ptr<ggml_threadpool>;

  // Decodes on `threadpool`, or where that is null on one of its own. Throws Error where the model cannot generate
  // text, or llama.cpp cannot set up a context.
  Context(std::shared_ptr<const Model> model, const Options& options, Threadpool threadpool = nullptr);

  const Model& model() const { return *model_; }
  const Options& options() const { return options_; }
  uint64_t bytes() const { return cache_bytes(*model_, options_.capacity, options_.cache_types); }
  const std::vector<llama_token>& tokens() const { return tokens_; }
  size_t decoded() const { return decoded_; }
  size_t capacity() const { return options_.capacity; }
  size_t room() const { return options_.capacity - tokens_.size(); }

  // Appends without decoding. The caller has checked room() and the ids.
  void append(const llama_token* tokens, size_t count) { tokens_.insert(tokens_.end(), tokens, tokens + count); }

  // Decodes what is not yet, in chunks, and leaves the logits of the last token. Throws Error: ELIZA_ERR_CANCELLED
  // within a chunk (on a CPU, within a fraction of one), else ELIZA_ERR_FFI_FAULT. After an error tokens() is what was
  // decoded.
  void decode();

  // Appends drafted tokens behind the one token that is not decoded, and decodes all of them: logits(i) are then those
  // after the i-th, and logits(0) those before the first draft. Throws as decode; the drafts are then gone.
  void decode_drafts(const std::vector<llama_token>& drafts);

  // Replaces the contents by a prompt, of which the longest prefix that they share is not decoded again. Returns its
  // length. At least the last token is decoded, so that there are logits. Throws as decode; the caller has checked the
  // ids, and that the prompt fits into capacity().
  size_t decode_prompt(const llama_token* tokens, size_t count);

  // The logits after the last token (or after a row of decode_drafts), one per token of the vocabulary; the caller may
  // change them. Valid until the next decode.
  float* logits(int32_t row = -1) const;

  // The hidden state there, for an MTP drafter.
  const float* hidden(int32_t row) const;

  llama_context* get() const { return context_.get(); }

  // Null with one thread, which is the caller's.
  const Threadpool& threadpool() const { return threadpool_; }

  // Drops all but the first `count` tokens. Where the model's memory cannot drop a part (a sliding window has forgotten
  // what the kept tokens need, or the state is recurrent), everything goes. Returns how many tokens remain.
  size_t truncate(size_t count);

  // The same for who cannot do without the kept tokens: those that the memory loses are decoded again, with what comes
  // next.
  void keep_first(size_t count);

  // A copy of the contents. `visible` is the caller's.
  SavedContext save() const;

  // The contents become those of `saved`, which has to come from a context of slot_identity(). Throws Error where it
  // does not fit; the contents are then as they were.
  void restore(const SavedContext& saved);
  SlotIdentity slot_identity() const;

  // From any thread: decode throws ELIZA_ERR_CANCELLED until clear_cancel.
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  void clear_cancel() {
    cancelled_.store(false, std::memory_order_relaxed);
    lost_ = false;
  }
  bool cancelled() const { return cancel_flag_->load(std::memory_order_relaxed); }
  // From now on this context is cancelled while `flag`, which outlives it, is set.
  void follow_cancel(const std::atomic<bool>& flag) { cancel_flag_ = &flag; }
  const std::atomic<bool>& cancel_flag() const { return *cancel_flag_; }
  void throw_if_cancelled() const;  // or where a call that failed has lost the contents

  // How many tokens it holds, for other threads: what its owner showed last, and during a decode what is decoded.
  size_t shown_size() const { return shown_size_.load(std::memory_order_relaxed); }
  void show_size(size_t size) { shown_size_.store(size, std::memory_order_relaxed); }

 private:
  bool forget_after(size_t count);
  bool can_continue_at(size_t count) const;
  bool load(const SavedContext& saved);
  int32_t run(const llama_batch& batch);
  void lose();
  void resynchronise();

  std::shared_ptr<const Model> model_;
  Options options_;
  std::atomic<bool> cancelled_{false};
  const std::atomic<bool>* cancel_flag_ = &cancelled_;
  Threadpool threadpool_;  // outlives the context that uses it
  ContextPtr context_;
  std::vector<llama_token> tokens_;
  size_t decoded_ = 0;
  bool lost_ = false;
  std::atomic<size_t> shown_size_{0};
  std::vector<int8_t> no_outputs_;   // for the chunks of a prefill but the last
  std::vector<int8_t> all_outputs_;  // for decode_drafts
};

}  // namespace eliza::llama_cpp
