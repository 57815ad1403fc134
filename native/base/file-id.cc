#include "native/base/file-id.h"

#include <sys/stat.h>

#include <cerrno>

#include "native/base/error.h"

namespace eliza {

FileId file_id(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) {
    throw Error(ELIZA_ERR_BUNDLE_INVALID, "the model file " + path + " cannot be opened: " + system_reason(errno));
  }
#if defined(__APPLE__)
  const struct timespec modified = info.st_mtimespec;
#else
  const struct timespec modified = info.st_mtim;
#endif
  return {info.st_dev, info.st_ino, info.st_size, modified.tv_sec, modified.tv_nsec};
}

}  // namespace eliza
