#include "native/base/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "native/base/quiet-writing.h"
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

// A log that cannot be written to is no reason to fail.
void write_line(int fd, const std::string& line) {
  const QuietWriting quiet;
  [[maybe_unused]] const ssize_t written = ::write(fd, line.data(), line.size());
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
