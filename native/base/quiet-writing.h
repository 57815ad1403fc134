// Writing that ends in an error where it cannot be, and not in a signal.
#pragma once

#include <signal.h>

#include <cstddef>

namespace eliza {

// While it lives, what this thread writes into a pipe that nobody reads any more, or beyond a limit on the size of
// files, raises no signal, which would end the host. A signal that was pending before stays so.
class QuietWriting {
 public:
  QuietWriting() {
    sigset_t blocked;
    sigemptyset(&blocked);
    for (size_t i = 0; i < kCount; ++i) {
      sigaddset(&blocked, kSignals[i]);
      was_pending_[i] = is_pending(kSignals[i]);
    }
    pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  }
  ~QuietWriting() {
    for (size_t i = 0; i < kCount; ++i) {
      if (was_pending_[i] || !is_pending(kSignals[i])) continue;
      sigset_t raised;
      sigemptyset(&raised);
      sigaddset(&raised, kSignals[i]);
      int taken;
      sigwait(&raised, &taken);
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  QuietWriting(const QuietWriting&) = delete;
  QuietWriting& operator=(const QuietWriting&) = delete;

 private:
  static constexpr size_t kCount = 2;
  static constexpr int kSignals[kCount] = {SIGPIPE, SIGXFSZ};

  static bool is_pending(int signal) {
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    return sigismember(&pending, signal) == 1;
  }

  bool was_pending_[kCount];
  sigset_t before_;
};

}  // namespace eliza
