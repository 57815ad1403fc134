// What is in a directory.
#pragma once

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "native/base/error.h"

namespace eliza {

// The names in `directory` for which wanted(entry) holds, sorted; none where there is no such directory. Hidden files
// are left out, as by a shell's `*`: macOS leaves "._model.gguf" beside "model.gguf". Throws
// Error(ELIZA_ERR_BUNDLE_INVALID) where the directory cannot be listed.
template <typename Wanted>
std::vector<std::string> list_directory(const std::string& directory, Wanted&& wanted) {
  const auto fail = [&](int error) {
    throw Error(ELIZA_ERR_BUNDLE_INVALID, directory + " cannot be listed: " + system_reason(error));
  };
  std::vector<std::string> names;
  DIR* opened;
  do opened = ::opendir(directory.c_str());
  while (opened == nullptr && errno == EINTR);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(opened, &::closedir);
  if (stream == nullptr) {
    if (errno != ENOENT) fail(errno);
    return names;
  }
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) break;
    if (entry->d_name[0] != '.' && wanted(*entry)) names.emplace_back(entry->d_name);
  }
  if (errno != 0) fail(errno);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace eliza
