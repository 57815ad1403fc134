// How a context of the C ABI, when it is destroyed, ends what is at work on it: loading a model, embedding, scoring.
#pragma once

#include <atomic>

#include "native/base/error.h"

namespace eliza::llama_cpp {

// Set once, from any thread.
using StopFlag = std::atomic<bool>;

// Null: nobody stops this.
inline bool is_stopped(const StopFlag* flag) { return flag != nullptr && flag->load(std::memory_order_relaxed); }

// Throws Error(ELIZA_ERR_CANCELLED).
inline void throw_if_stopped(const StopFlag* flag) {
  if (is_stopped(flag)) throw Error(ELIZA_ERR_CANCELLED, "the context was destroyed while this call was at work on it");
}

}  // namespace eliza::llama_cpp
