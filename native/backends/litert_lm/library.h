// LiteRT-LM's shared library: found, looked at, and opened once per process.
#pragma once

#include <string>

#include "native/backends/litert_lm/litert-lm-api.h"

namespace eliza::litert_lm {

struct Library {
  Api api;
  std::string path;  // as it was opened
  void* handle;
};

// The library, which stays open until the process ends: it has threads of its own. Where none is open yet, looks for it
// at ELIZA_LITERT_LM_LIBRARY and nowhere else, where that is set; else beside this library, in <bundle>/lib
// (`bundle_dir` may be null) and on the loader's path. nullptr where there is none that this backend knows how to call;
// *why then says what was tried, and what is wrong with each. Cheap once it has found one.
const Library* find_library(const char* bundle_dir, std::string* why);

// Opens the library at `path` and fills the table. nullptr where it cannot be opened, is of another version, or lacks
// functions; *why then says which.
const Library* open_library(const std::string& path, std::string* why);

}  // namespace eliza::litert_lm
