#include "native/backends/litert_lm/generation.h"

#include <new>
#include <utility>

#include "native/backends/litert_lm/owned.h"
#include "native/base/error.h"

namespace eliza::litert_lm {
namespace {

// Pieces of text, a token each as a rule, that the runtime may be ahead of its client.
constexpr size_t kMostQueued = 32;

}  // namespace

Generation::Generation(const Api& api, std::shared_ptr<Floor> floor, std::shared_ptr<std::atomic<bool>> cancelled)
    : api_(api), floor_(std::move(floor)), cancelled_(std::move(cancelled)) {}

void Generation::start(LiteRtLmSession* session, std::shared_ptr<Floor::Turn> turn) {
  {
    const std::lock_guard<std::mutex> lock(floor_->mutex);
    session_ = session;
    turn_ = std::move(turn);
    self_ = shared_from_this();
  }
  if (api_.session_run_decode_async(session, &Generation::on_chunk, this) == 0) return;
  const std::string reason = last_error(api_);
  disown();
  throw Error(ELIZA_ERR_FFI_FAULT, "LiteRT-LM cannot generate (" + reason + "); reset the stream to try again");
}

void Generation::on_chunk(void* self, const LiteRtLmStreamChunk* chunk) {
  auto* const generation = static_cast<Generation*>(self);
  const Api& api = generation->api_;
  const char* const text = api.stream_chunk_get_text(chunk);
  const char* const error = api.stream_chunk_get_error(chunk);
  const bool final = api.stream_chunk_is_final(chunk);
  if (text != nullptr && (!final || *text != '\0')) generation->push(text);
  if (final || error != nullptr) generation->end(error, final);
}

void Generation::push(const char* text) noexcept {
  bool cancel = false;
  {
    std::unique_lock<std::mutex> lock(floor_->mutex);
    if (ended_) return;
    try {
      if (!stopped_) queue_.emplace_back(text);
    } catch (const std::bad_alloc&) {
      out_of_memory_ = true;
      ended_ = true;
    }
    floor_->changed.notify_all();
    const auto goes_on = [this] {
      return queue_.size() < kMostQueued || stopped_ || ended_ || *cancelled_ || floor_->wanted();
    };
    floor_->changed.wait(lock, goes_on);
    cancel = stopped_ || ended_ || *cancelled_;
  }
  // Here and nowhere else: a cancel that comes before the decode's first callback can keep all of them from coming.
  if (cancel) api_.session_cancel_process(session_);
}

void Generation::end(const char* error, bool last) noexcept {
  std::shared_ptr<Generation> self;  // freed when nothing of this object is used any more
  if (last) {
    std::shared_ptr<Floor::Turn> turn;
    {
      const std::lock_guard<std::mutex> lock(floor_->mutex);
      self.swap(self_);
      turn.swap(turn_);
    }
    // The floor is free before the end is told: who hears of that may ask the runtime something.
  }
  const std::lock_guard<std::mutex> lock(floor_->mutex);
  try {
    if (!ended_ && error != nullptr) error_ = error;
  } catch (const std::bad_alloc&) {
    out_of_memory_ = true;
  }
  ended_ = true;
  floor_->changed.notify_all();
}

Generation::Chunk Generation::next(std::chrono::seconds limit) {
  std::unique_lock<std::mutex> lock(floor_->mutex);
  floor_->changed.wait_for(lock, limit, [this] { return !queue_.empty() || ended_ || *cancelled_; });
  Chunk chunk;
  if (!queue_.empty()) {
    chunk.text = std::move(queue_.front());
    queue_.pop_front();
    floor_->changed.notify_all();
  } else if (out_of_memory_) {
    throw std::bad_alloc();
  } else if (ended_) {
    chunk.ended = true;
    chunk.error = error_;
  }
  return chunk;
}

void Generation::stop() noexcept {
  const std::lock_guard<std::mutex> lock(floor_->mutex);
  stopped_ = true;
  queue_.clear();
  floor_->changed.notify_all();
}

bool Generation::wait_for_end(std::chrono::seconds limit) noexcept {
  std::unique_lock<std::mutex> lock(floor_->mutex);
  return floor_->changed.wait_for(lock, limit, [this] { return ended_; });
}

void Generation::disown() noexcept { end(nullptr, /*last=*/true); }

}  // namespace eliza::litert_lm
