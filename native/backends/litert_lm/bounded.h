// Waiting for a runtime that may not answer: for everything there is a limit, ELIZA_LITERT_TIMEOUT.
#pragma once

#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "native/base/error.h"

namespace eliza::litert_lm {

// ELIZA_LITERT_TIMEOUT in seconds, else 120. Throws Error(ELIZA_ERR_INVALID_ARG) where it is not 1 to 3600.
std::chrono::seconds wait_limit();

// That the runtime did not do `what` in time, and what to do about it.
Error timed_out(const std::string& what, std::chrono::seconds limit);

// Keeps this library in the process for good: a thread is left in its code.
void stay_loaded() noexcept;

// What `body` returns, or throws, on a thread of its own; nullopt where it has not come back within `limit`. It then
// goes on by itself, so it must own all that it uses.
template <typename Body>
auto run_bounded(std::chrono::seconds limit, Body body) -> std::optional<decltype(body())> {
  std::packaged_task<decltype(body())()> task(std::move(body));
  auto result = task.get_future();
  std::thread thread(std::move(task));
  if (result.wait_for(limit) == std::future_status::ready) {
    thread.join();
    return result.get();
  }
  stay_loaded();
  thread.detach();
  return std::nullopt;
}

}  // namespace eliza::litert_lm
