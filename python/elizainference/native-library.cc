#include "python/elizainference/native-library.h"

#include <dlfcn.h>

#include <atomic>
#include <memory>
#include <mutex>

namespace eliza::python {

namespace {

// Set once, and never unloaded: Python objects with handles may outlive any attempt at order.
std::atomic<const Library*> loaded{nullptr};

// Opens the library at `path`; the reason why not is appended to `*why`.
std::unique_ptr<Library> open_library(const std::string& path, std::string* why) {
  *why += "\n  " + path + ": ";
  // RTLD_LOCAL: what the library carries inside (ggml, C++ runtimes) meets no other copy in this process.
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const std::string reason = dlerror();
    const std::string prefix = path + ": ";
    *why += reason.compare(0, prefix.size(), prefix) == 0 ? reason.substr(prefix.size()) : reason;
    return nullptr;
  }
  auto library = std::make_unique<Library>();
  library->path = path;
  std::string missing;
#define ELIZA_FIND(name)                                                                                        \
  library->name = reinterpret_cast<decltype(&eliza_inference_##name)>(dlsym(handle, "eliza_inference_" #name)); \
  if (library->name == nullptr) missing += missing.empty() ? #name : ", " #name;
  ELIZA_FUNCTIONS(ELIZA_FIND)
#undef ELIZA_FIND
  const std::string abi = library->abi_version == nullptr ? "" : library->abi_version();
  if (abi == "15" || abi == "12") library->abi = std::stoi(abi);
  if (abi.empty()) {
    *why += "it is not a libelizainference";
  } else if (library->abi == 0) {
    *why += "its ABI is " + abi + "; this package speaks 12 and 15";
  } else if (!missing.empty()) {
    *why += "it lacks the functions eliza_inference_{" + missing + "}; take the library of this package's version";
  } else {
    return library;
  }
  dlclose(handle);
  return nullptr;
}

}  // namespace

const Library& library() {
  const Library* library = loaded.load(std::memory_order_acquire);
  if (library == nullptr) throw StatusError(ELIZA_ERR_ABI_MISMATCH, "load() was not called");
  return *library;
}

std::string load(const std::vector<std::string>& paths) {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  if (const Library* library = loaded.load(std::memory_order_acquire)) return library->path;
  std::string tried;
  for (const std::string& path : paths) {
    if (std::unique_ptr<Library> library = open_library(path, &tried)) {
      loaded.store(library.release(), std::memory_order_release);
      return loaded.load()->path;
    }
  }
  throw StatusError(ELIZA_ERR_ABI_MISMATCH,
                    "libelizainference could not be loaded. Set ELIZA_INFERENCE_LIBRARY to its path, or "
                    "ELIZA_INFERENCE_LIB_DIR to its folder. Tried:" +
                        tried);
}

}  // namespace eliza::python
