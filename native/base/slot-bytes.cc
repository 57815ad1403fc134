#include "native/base/slot-bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

#include "native/base/descriptor.h"
#include "native/base/error.h"
#include "native/base/quiet-writing.h"

namespace eliza {
namespace {

// A new file beside `path`; its name goes to *name. Names are tried until one is free: a process that was killed may
// have left its file, and have had the number of this one, as the only process of a container has.
int create_beside(const std::string& path, std::string* name) {
  static std::atomic<uint64_t> counter{0};
  int file;
  do {
    *name = path + ".tmp." + std::to_string(::getpid()) + "." + std::to_string(counter++);
    // Mine alone: a conversation is in it.
    file = open_file(name->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  } while (file < 0 && errno == EEXIST);
  return file;
}

// What will be `path`: unlinked, where it does not come to that.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& path) : file_(create_beside(path, &name_)) {}
  ~TemporaryFile() {
    if (file_.get() >= 0 && !name_.empty()) ::unlink(name_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const Descriptor& file() const { return file_; }
  bool rename_to(const std::string& path) {
    if (::rename(name_.c_str(), path.c_str()) != 0) return false;
    name_.clear();
    return true;
  }

 private:
  std::string name_;
  const Descriptor file_;  // behind its name
};

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

void refuse_slot(const std::string& path, const std::string& what) {
  throw Error(ELIZA_ERR_INVALID_ARG, "the slot file " + path + " " + what + "; nothing was restored");
}

void write_slot_bytes(const std::string& path, std::initializer_list<SlotPart> parts) {
  const auto fail = [&](const char* what) {
    const int error = errno;
    throw Error(ELIZA_ERR_FFI_FAULT, "the slot file " + path + " cannot be " + what + ": " + system_reason(error));
  };
  // A rename takes the place of whatever is there: of a device or a pipe, too.
  struct stat target{};
  if (::stat(path.c_str(), &target) == 0 && !S_ISREG(target.st_mode)) {
    throw Error(ELIZA_ERR_INVALID_ARG,
                "the slot file " + path + " exists and is not a regular file; name another. Nothing was saved");
  }
  const QuietWriting quiet;
  TemporaryFile temporary(path);
  const Descriptor& file = temporary.file();
  if (file.get() < 0) fail("created");
  for (const SlotPart& part : parts) {
    if (!file.write_all(part.data, part.size)) fail("written");
  }
  if (!file.sync()) fail("written");
  const std::string directory_path = directory_of(path);
  if (!temporary.rename_to(path)) fail("put in its place");
  // From here on the slot is saved, and nothing may fail.
  // So that the name, too, survives a power cut. Not every file system can; then the file is whole all the same.
  const Descriptor directory(open_file(directory_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() >= 0) directory.sync();
}

SlotReader::SlotReader(const std::string& path) try : path_(path), file_(path) {
} catch (const Unreadable& problem) {
  refuse_slot(path, problem.what());
}

bool SlotReader::read(void* data, size_t size) {
  try {
    const size_t count = file_.read_at(position_, data, size);
    position_ += count;
    return count == size;
  } catch (const Unreadable& problem) {
    refuse_slot(path_, problem.what());
  }
}

}  // namespace eliza
