#include "native/base/regular-file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>

#include "native/base/error.h"

namespace eliza {

// O_NONBLOCK: or the opening of a pipe would wait.
RegularFile::RegularFile(const std::string& path) : file_(open_file(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (file_.get() < 0) {
    const int error = errno;
    if (error == ENOENT && is_there(path)) throw Unreadable("is a link to a file that does not exist");
    throw Unreadable("cannot be opened: " + system_reason(error));
  }
  struct stat info{};
  if (::fstat(file_.get(), &info) != 0) throw Unreadable("cannot be read: " + system_reason(errno));
  if (S_ISDIR(info.st_mode)) throw Unreadable("is a directory, not a file");
  if (!S_ISREG(info.st_mode)) throw Unreadable("is not a regular file");
  size_ = static_cast<uint64_t>(info.st_size);
}

size_t RegularFile::read_at(uint64_t offset, void* data, size_t size) const {
  size_t done = 0;
  while (done < size) {
    const ssize_t count =
        ::pread(file_.get(), static_cast<char*>(data) + done, size - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Unreadable("cannot be read: " + system_reason(errno));
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return done;
}

bool is_there(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0 || errno != ENOENT;
}

std::string system_text(const std::string& path) {
  std::string text;
  try {
    const RegularFile file(path);
    char part[4096];  // its size is not known before
    while (const size_t count = file.read_at(text.size(), part, sizeof part)) text.append(part, count);
  } catch (const Unreadable&) {
  }
  return text;
}

}  // namespace eliza
