// The callback of eliza_inference_set_verifier_callback, shared by a context's sessions.
#pragma once

#include <mutex>
#include <vector>

#include "llama.h"
#include "native/include/eliza-inference-ffi.h"

namespace eliza::llama_cpp {

// Thread-safe. Calls are made one at a time; once set has returned, the former callback is not called any more.
class VerifierHook {
 public:
  void set(eliza_verifier_callback_t callback, void* user_data) {
    const std::lock_guard<std::recursive_mutex> lock(mutex_);
    callback_ = callback;
    user_data_ = user_data;
  }

  // One speculative step: `drafted` tokens of which the first `accepted` were right. `first` is the index of the first
  // among the generated tokens. `correction`: the token in the place of the first wrong one, LLAMA_TOKEN_NULL for none.
  void report(const std::vector<llama_token>& drafted, size_t accepted, int64_t first, llama_token correction) {
    const std::lock_guard<std::recursive_mutex> lock(mutex_);
    if (callback_ == nullptr) return;
    const bool rejected = accepted < drafted.size();
    EliVerifierEvent event = {};
    event.accepted_token_ids = drafted.data();
    event.n_accepted = accepted;
    event.rejected_from = rejected ? static_cast<int>(first + static_cast<int64_t>(accepted)) : -1;
    event.rejected_to = rejected ? static_cast<int>(first + static_cast<int64_t>(drafted.size()) - 1) : -1;
    event.corrected_token_ids = &correction;
    event.n_corrected = rejected && correction != LLAMA_TOKEN_NULL ? 1 : 0;
    callback_(&event, user_data_);
  }

 private:
  std::recursive_mutex mutex_;  // recursive: a callback may replace itself
  eliza_verifier_callback_t callback_ = nullptr;
  void* user_data_ = nullptr;
};

}  // namespace eliza::llama_cpp
