// One decode of the runtime, which pushes text from a thread of its own, as a queue to pull from.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "native/backends/litert_lm/floor.h"
#include "native/backends/litert_lm/litert-lm-api.h"

namespace eliza::litert_lm {

// The runtime's callback may come late, after its session was given up, or never. So a generation owns itself from
// start until the last callback, or until somebody knows that none will come (disown).
//
// A full queue holds the runtime back, in its callback, until there is room, the generation is stopped, or another
// session wants the floor: the runtime has only one thread for both, and then runs on to this generation's end.
class Generation : public std::enable_shared_from_this<Generation> {
 public:
  // `cancelled` stops it, too.
  Generation(const Api& api, std::shared_ptr<Floor> floor, std::shared_ptr<std::atomic<bool>> cancelled);

  // Starts to decode. Throws Error where the runtime does not.
  void start(LiteRtLmSession* session, std::shared_ptr<Floor::Turn> turn);

  struct Chunk {
    std::optional<std::string> text;  // nullopt: none has come
    bool ended = false;               // and none will
    std::string error;                // of an end: the runtime's words; empty for a good one
  };

  // Waits for text, the end, a cancel, or for `limit`. Throws std::bad_alloc where memory ran out on the runtime's
  // thread, behind the text that came before.
  Chunk next(std::chrono::seconds limit);

  // Asks the runtime to stop with its next token. Queued text is dropped.
  void stop() noexcept;

  // Whether it has ended, after waiting for it for at most `limit`.
  bool wait_for_end(std::chrono::seconds limit) noexcept;

  // The runtime's session is gone, and with it every callback.
  void disown() noexcept;

 private:
  static void on_chunk(void* self, const LiteRtLmStreamChunk* chunk);
  void push(const char* text) noexcept;
  void end(const char* error, bool last) noexcept;

  const Api& api_;
  const std::shared_ptr<Floor> floor_;  // its mutex guards all below
  const std::shared_ptr<std::atomic<bool>> cancelled_;
  LiteRtLmSession* session_ = nullptr;
  std::shared_ptr<Generation> self_;
  std::shared_ptr<Floor::Turn> turn_;
  std::deque<std::string> queue_;
  bool stopped_ = false;
  bool ended_ = false;
  std::string error_;
  bool out_of_memory_ = false;  // on the runtime's thread: for next to tell
};

}  // namespace eliza::litert_lm
