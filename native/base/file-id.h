// Whether a file is still the one it was.
#pragma once

#include <sys/types.h>

#include <ctime>
#include <string>
#include <tuple>

namespace eliza {

// Inode, size and modification time: equal as long as nobody has written the file or put another in its place.
using FileId = std::tuple<dev_t, ino_t, off_t, time_t, long>;

// Of the model file at `path`. Throws Error(ELIZA_ERR_BUNDLE_INVALID) where it cannot be looked at.
FileId file_id(const std::string& path);

}  // namespace eliza
