// A file descriptor that is closed with its owner, and opens, writes and syncs that a signal does not cut short.
#pragma once

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace eliza {

// The descriptor, or -1 with errno set. `mode`: of a file that is created.
inline int open_file(const char* path, int flags, mode_t mode = 0) {
  int file;
  do file = ::open(path, flags, mode);  // waits, and so can be interrupted, on file systems of a network
  while (file < 0 && errno == EINTR);
  return file;
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

  // False where the system refuses.
  bool sync() const {
    int result;
    do result = ::fsync(fd_);
    while (result != 0 && errno == EINTR);
    return result == 0;
  }

  bool write_all(const void* data, size_t size) const {
    const char* bytes = static_cast<const char*>(data);
    while (size > 0) {
      const ssize_t count = ::write(fd_, bytes, size);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      bytes += count;
      size -= static_cast<size_t>(count);
    }
    return true;
  }

 private:
  int fd_;
};

}  // namespace eliza
