#include "native/backends/litert_lm/library.h"

#include <dlfcn.h>

#include <mutex>
#include <vector>

#include "native/base/environment.h"
#include "native/base/error.h"

namespace eliza::litert_lm {
namespace {

#if defined(__APPLE__)
constexpr char kFileName[] = "liblitert-lm.dylib";
#else
constexpr char kFileName[] = "liblitert-lm.so";
#endif

// Whose signatures cannot be told from the symbols we need: these two can.
std::string version_problem(void* handle) {
  if (dlsym(handle, "litert_lm_get_api_version") != nullptr) {
    return "it is LiteRT-LM 0.19 or newer, whose functions take other arguments (it has litert_lm_get_api_version); "
           "this backend speaks 0.16 to 0.18";
  }
  if (dlsym(handle, "litert_lm_stream_chunk_get_text") == nullptr) {
    return "it is no LiteRT-LM, or one older than 0.16, whose callback takes other arguments (it has no "
           "litert_lm_stream_chunk_get_text); this backend speaks 0.16 to 0.18";
  }
  return {};
}

// Fills the table; "" or the functions that are missing.
std::string load_functions(void* handle, Api* api) {
  std::string missing;
#define ELIZA_LITERT_LM_LOAD(result, name, arguments) \
  api->name = reinterpret_cast<decltype(api->name)>(dlsym(handle, "litert_lm_" #name));
#define ELIZA_LITERT_LM_REQUIRE(result, name, arguments) \
  ELIZA_LITERT_LM_LOAD(result, name, arguments)          \
  if (api->name == nullptr) missing += (missing.empty() ? "litert_lm_" : ", litert_lm_") + std::string(#name);
  ELIZA_LITERT_LM_REQUIRED(ELIZA_LITERT_LM_REQUIRE)
  ELIZA_LITERT_LM_OPTIONAL(ELIZA_LITERT_LM_LOAD)
#undef ELIZA_LITERT_LM_REQUIRE
#undef ELIZA_LITERT_LM_LOAD
  return missing;
}

// The library that came with ours; empty where we do not know where we are.
std::string own_library() {
#if defined(__ANDROID__)
  return kFileName;  // by its name: an app's libraries may lie inside its package, and no path leads there
#else
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&find_library), &self) == 0 || self.dli_fname == nullptr) return {};
  const std::string own_path = self.dli_fname;
  const size_t slash = own_path.rfind('/');
  return slash == std::string::npos ? std::string() : own_path.substr(0, slash + 1) + kFileName;
#endif
}

// Where to look, in order. What lies in a bundle is somebody else's, perhaps: it is taken where we brought none.
std::vector<std::string> candidates(const char* bundle_dir) {
  if (const std::string path = variable("ELIZA_LITERT_LM_LIBRARY"); !path.empty()) return {path};
  const std::string own = own_library();
  std::vector<std::string> paths;
  if (!own.empty()) paths.push_back(own);
  if (bundle_dir != nullptr) paths.push_back(std::string(bundle_dir) + "/lib/" + kFileName);
  if (own != kFileName) paths.emplace_back(kFileName);
  return paths;
}

}  // namespace

const Library* open_library(const std::string& path, std::string* why) {
  // Local, and now: it exports hundreds of thousands of symbols, protobuf's and BoringSSL's among them.
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    *why = reason != nullptr ? reason : "it cannot be opened";
    return nullptr;
  }
  Library library{{}, path, handle};
  *why = version_problem(handle);
  if (why->empty()) {
    const std::string missing = load_functions(handle, &library.api);
    if (!missing.empty()) *why = "it lacks " + missing;
  }
  if (!why->empty()) {
    dlclose(handle);
    return nullptr;
  }
  library.api.set_min_log_level(kSilent);
  return new Library(library);
}

const Library* find_library(const char* bundle_dir, std::string* why) {
  static std::mutex& mutex = *new std::mutex;
  static const Library* found = nullptr;
  const std::lock_guard<std::mutex> lock(mutex);
  if (found != nullptr) return found;
  std::string tried;
  for (const std::string& path : candidates(bundle_dir)) {
    std::string problem;
    found = open_library(path, &problem);
    if (found != nullptr) return found;
    tried += (tried.empty() ? "" : "; ") + path + ": " + problem;
  }
  *why = "LiteRT-LM's library was looked for in vain (" + tried +
         "); ELIZA_LITERT_LM_LIBRARY names the file where it is elsewhere";
  return nullptr;
}

}  // namespace eliza::litert_lm
