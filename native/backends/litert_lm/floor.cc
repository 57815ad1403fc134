#include "native/backends/litert_lm/floor.h"

#include <string>

#include "native/base/error.h"
#include "native/text/stream-checks.h"

namespace eliza::litert_lm {

std::shared_ptr<Floor::Turn> Floor::enter(const std::atomic<bool>& cancelled, std::chrono::seconds limit) {
  std::unique_lock<std::mutex> lock(mutex);
  ++waiting_;
  changed.notify_all();  // who is held back need not be any longer
  const bool free = changed.wait_for(lock, limit, [&] { return !taken_ || cancelled; });
  --waiting_;
  if (cancelled) throw_cancelled();
  if (!free) {
    throw Error(ELIZA_ERR_FFI_FAULT,
                "LiteRT-LM is busy with another stream of this model, and has been for " +
                    std::to_string(limit.count()) +
                    " s: it works on one generation at a time; wait for that one, cancel it, or set "
                    "ELIZA_LITERT_TIMEOUT to more seconds");
  }
  return take();
}

std::shared_ptr<Floor::Turn> Floor::try_enter() {
  const std::lock_guard<std::mutex> lock(mutex);
  if (taken_) return nullptr;
  return take();
}

// Expects that nobody has it.
std::shared_ptr<Floor::Turn> Floor::take() {
  auto turn = std::make_shared<Turn>(shared_from_this());  // first: without memory for it, nobody would ever leave
  taken_ = true;
  return turn;
}

void Floor::wake() {
  const std::lock_guard<std::mutex> lock(mutex);
  changed.notify_all();
}

void Floor::leave() {
  const std::lock_guard<std::mutex> lock(mutex);
  taken_ = false;
  changed.notify_all();
}

}  // namespace eliza::litert_lm
