// Whose turn it is on an engine. The runtime has one thread for an engine: a session that works, or is held back, makes
// all others wait inside the runtime, without a limit. So they wait here.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

namespace eliza::litert_lm {

class Floor : public std::enable_shared_from_this<Floor> {
 public:
  // While it lives, no other session works on the engine.
  class Turn {
   public:
    explicit Turn(std::shared_ptr<Floor> floor) : floor_(std::move(floor)) {}
    ~Turn() { floor_->leave(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    std::shared_ptr<Floor> floor_;
  };

  // Waits for the floor. Throws Error: ELIZA_ERR_CANCELLED once `cancelled`, or that another stream has it for longer
  // than `limit`.
  std::shared_ptr<Turn> enter(const std::atomic<bool>& cancelled, std::chrono::seconds limit);

  // The floor, where it is free this very moment; else null.
  std::shared_ptr<Turn> try_enter();

  // Wakes all who wait here, to look at what has changed.
  void wake();

  // Guards what generations on this engine share with the runtime's thread. `changed` is notified with it held.
  std::mutex mutex;
  std::condition_variable changed;

  // With the mutex held: whether somebody waits for the floor.
  bool wanted() const { return waiting_ > 0; }

 private:
  std::shared_ptr<Turn> take();
  void leave();

  bool taken_ = false;
  int waiting_ = 0;
};

}  // namespace eliza::litert_lm
