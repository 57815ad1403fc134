// A file to read, and nothing that only has a file's name: a pipe, whose opening waits for who writes into it, a
// device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "native/base/descriptor.h"

namespace eliza {

// Why a file is not read, to go on behind its name: "cannot be opened: Permission denied". What it holds is not to
// blame.
class Unreadable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Open for reading; programs that the host starts do not get it. Functions throw Unreadable.
class RegularFile {
 public:
  explicit RegularFile(const std::string& path);

  uint64_t size() const { return size_; }  // when it was opened

  // Reads `size` bytes from `offset` on, fewer where the file ends before that. Returns how many.
  size_t read_at(uint64_t offset, void* data, size_t size) const;

 private:
  Descriptor file_;
  uint64_t size_ = 0;
};

// Whether there is something of this name, if only a link that leads nowhere: to open it then says what is wrong.
bool is_there(const std::string& path);

// What the kernel writes into a file of /proc or /sys; empty where there is none.
std::string system_text(const std::string& path);

}  // namespace eliza
