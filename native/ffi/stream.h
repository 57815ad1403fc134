// What an EliLlmStream* stands for: a backend's session, one call at a time.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "native/base/live-count.h"
#include "native/ffi/handle-table.h"
#include "native/include/eliza-inference-ffi.h"
#include "native/seam/llm-backend.h"

namespace eliza {

class LlmStream final : public HandleObject {
 public:
  LlmStream(std::string backend, std::unique_ptr<LlmBackendSession> session)
      : backend_(std::move(backend)), session_(std::move(session)) {}

  // The name of the backend that answers.
  const std::string& backend() const { return backend_; }

  // The session's turn: while it lives no other call is on the session. Waits for the call before it, except in a
  // callback (which is inside a call itself), where that is an Error. ELIZA_ERR_CANCELLED where the stream was closed
  // meanwhile.
  class Turn {
   public:
    explicit Turn(LlmStream* stream);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    LlmBackendSession* operator->() const { return stream_->session_.get(); }

   private:
    LlmStream* stream_;
  };

  // Past every turn: a cancel is for the call that has it.
  int cancel() { return session_->cancel(); }

  // Past every turn as well, where the backend allows that.
  LlmSessionStats stats() { return session_->has_concurrent_stats() ? session_->stats() : Turn(this)->stats(); }

  void stop() noexcept override;

 private:
  const LiveCount live_{Live::kStreams};
  const std::string backend_;
  const std::unique_ptr<LlmBackendSession> session_;

  std::mutex mutex_;
  std::condition_variable turn_ended_;
  bool busy_ = false;
  bool closed_ = false;
};

// A stream, for the length of a call. Throws Error where the handle is no open stream.
class StreamPin {
 public:
  explicit StreamPin(const EliLlmStream* handle)
      : pin_(handle_table().pin(HandleKind::kLlmStream, reinterpret_cast<uintptr_t>(handle))) {}

  LlmStream* operator->() const { return get(); }
  LlmStream* get() const { return static_cast<LlmStream*>(pin_.object()); }

 private:
  HandleTable::Pin pin_;
};

}  // namespace eliza
