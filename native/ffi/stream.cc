#include "native/ffi/stream.h"

#include "native/base/error.h"

namespace eliza {

LlmStream::Turn::Turn(LlmStream* stream) : stream_(stream) {
  std::unique_lock<std::mutex> lock(stream->mutex_);
  if (stream->busy_ && pins_of_this_thread() > 1) {
    throw Error(ELIZA_ERR_INVALID_ARG,
                "the LLM stream is in another call, and this one comes from a callback, which may not wait for it; "
                "call it when the call that the callback came from has returned (a cancel is fine at any time)");
  }
  stream->turn_ended_.wait(lock, [stream] { return !stream->busy_ || stream->closed_; });
  if (stream->closed_)
    throw Error(ELIZA_ERR_CANCELLED, "the LLM stream was closed while this call waited for its turn");
  stream->busy_ = true;
}

LlmStream::Turn::~Turn() {
  std::lock_guard<std::mutex> lock(stream_->mutex_);
  stream_->busy_ = false;
  stream_->turn_ended_.notify_one();
}

void LlmStream::stop() noexcept {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    turn_ended_.notify_all();
  }
  try {
    session_->cancel();
  } catch (...) {
    // Then the call in flight ends when it ends; close waits for it either way.
  }
}

}  // namespace eliza
