// What fuzz targets share: numbers out of an input's bytes, and checks whose failure is a finding.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "native/text/utf8-gate.h"

namespace eliza::fuzz {

// Ends the process where a promise is broken: a fuzzer's way to say so.
inline void require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", promise);
  std::abort();
}

// A message that a client can show.
inline void require_message(std::string_view message) {
  require(!message.empty(), "an error has a message");
  require(message == to_valid_utf8(message), "a message is UTF-8");
}

// Takes an input apart from the front; zeros behind its end.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  bool empty() const { return size_ == 0; }

  uint8_t byte() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }

  // Below `bound`, which is at most 256.
  size_t below(size_t bound) { return byte() % bound; }

  std::string_view bytes(size_t count) {
    if (count > size_) count = size_;
    const std::string_view taken(reinterpret_cast<const char*>(data_), count);
    data_ += count;
    size_ -= count;
    return taken;
  }

  std::string_view rest() { return bytes(size_); }

 private:
  const uint8_t* data_;
  size_t size_;
};

// A new directory, which whoever runs the target removes. $FUZZ_FOLDER is for .ci/fuzz: Bazel, which runs the fuzzers
// there, would take a TEST_TMPDIR for the place of all it has built, and build it anew.
inline std::string make_folder() {
  const char* parent = std::getenv("FUZZ_FOLDER");
  if (parent == nullptr) parent = std::getenv("TEST_TMPDIR");
  std::string folder = std::string(parent == nullptr ? "/tmp" : parent) + "/fuzz-XXXXXX";
  require(mkdtemp(folder.data()) != nullptr, "a directory can be made");
  return folder;
}

// The bytes as a regular file without a name.
class MemoryFile {
 public:
  MemoryFile(const uint8_t* data, size_t size) : fd_(memfd_create("fuzz", MFD_CLOEXEC)) {
    require(fd_ >= 0 && ::write(fd_, data, size) == static_cast<ssize_t>(size), "there is memory for the input");
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

}  // namespace eliza::fuzz
