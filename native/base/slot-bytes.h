// Slot files as bytes, whatever a backend puts into them: written whole or not at all, and opened with care.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "native/base/regular-file.h"

namespace eliza {

// Throws Error(ELIZA_ERR_INVALID_ARG): the slot file, what is wrong with it, and that nothing was restored.
[[noreturn]] void refuse_slot(const std::string& path, const std::string& what);

struct SlotPart {
  const void* data;
  size_t size;
};

// Writes the parts to `path`, one behind the other, atomically: a temporary file beside it that nobody else may read,
// fsync, rename. Throws Error; `path` is then as it was.
void write_slot_bytes(const std::string& path, std::initializer_list<SlotPart> parts);

// Throws Error where it cannot be read.
class SlotReader {
 public:
  explicit SlotReader(const std::string& path);

  uint64_t size() const { return file_.size(); }

  // The next bytes; false where the file ends before that.
  bool read(void* data, size_t size);

 private:
  const std::string path_;
  const RegularFile file_;
  uint64_t position_ = 0;
};

}  // namespace eliza
