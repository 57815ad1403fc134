// Adds the time of a scope to a counter.
#pragma once

#include <chrono>

namespace eliza {

// Adds the time until its end to *milliseconds.
class Stopwatch {
 public:
  explicit Stopwatch(double* milliseconds) : milliseconds_(milliseconds) {}
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() {
    *milliseconds_ += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  double* milliseconds_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace eliza
