#include "native/base/log.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "native/base/strings.h"

namespace eliza {
namespace {

int open_log() {
  const char* name = std::getenv("ELIZA_LOG");
  if (!is_set(name)) return -1;
  if (std::string_view(name) == "stderr") return STDERR_FILENO;
  // Never closed: a logging thread may outlive any owner it could have. O_APPEND keeps lines of threads, and of
  // processes that share the file, whole. A pipe that nobody reads must not hold the host up.
  return ::open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644);
}

int log_fd() {
  static const int fd = open_log();
  return fd;
}

bool is_pending(int signal) {
  sigset_t pending;
  sigemptyset(&pending);
  sigpending(&pending);
  return sigismember(&pending, signal) == 1;
}

// A log that cannot be written to is no reason to fail, nor, where it is a pipe that nobody reads any more, to end the
// host with the signal that comes of it.
void write_line(int fd, const std::string& line) {
  sigset_t broken_pipe;
  sigset_t before;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  const bool was_pending = is_pending(SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
  [[maybe_unused]] const ssize_t written = ::write(fd, line.data(), line.size());
  int taken;
  if (!was_pending && is_pending(SIGPIPE)) sigwait(&broken_pipe, &taken);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

bool log_enabled() { return log_fd() >= 0; }

void log(std::string_view source, std::string_view message) noexcept {
  const int fd = log_fd();
  if (fd < 0) return;
  while (!message.empty() && message.back() == '\n') message.remove_suffix(1);
  if (message.empty()) return;
  try {
    std::string line;
    line.reserve(source.size() + message.size() + 3);
    line.append(source).append(": ").append(message).append("\n");
    write_line(fd, line);
  } catch (...) {
  }
}

}  // namespace eliza
