// Adds the time of a scope to a counter.
#pragma once

#include <chrono>

namespace eliza {

// Adds the time until its end to *milliseconds: a double, or a std::atomic<double> that only this thread writes.
template <typename Counter>
class Stopwatch {
 public:
  explicit Stopwatch(Counter* milliseconds) : milliseconds_(milliseconds) {}
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() {
    const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start_;
    *milliseconds_ = *milliseconds_ + elapsed.count();
  }

 private:
  Counter* milliseconds_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace eliza
