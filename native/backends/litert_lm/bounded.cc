#include "native/backends/litert_lm/bounded.h"

#include <dlfcn.h>

#include <cstdlib>

namespace eliza::litert_lm {

std::chrono::seconds wait_limit() {
  constexpr long kDefault = 120;
  constexpr long kMost = 3600;
  const char* value = std::getenv("ELIZA_LITERT_TIMEOUT");
  if (value == nullptr || *value == '\0') return std::chrono::seconds(kDefault);
  char* end = nullptr;
  const long seconds = std::strtol(value, &end, 10);
  if (*end != '\0' || seconds < 1 || seconds > kMost) {
    throw Error(ELIZA_ERR_INVALID_ARG, "ELIZA_LITERT_TIMEOUT is '" + std::string(value) +
                                           "': set it to a number of seconds from 1 to " + std::to_string(kMost) +
                                           ", or unset it");
  }
  return std::chrono::seconds(seconds);
}

Error timed_out(const std::string& what, std::chrono::seconds limit) {
  return Error(ELIZA_ERR_FFI_FAULT, "LiteRT-LM has not " + what + " within " + std::to_string(limit.count()) +
                                        " s; reset the stream to try again, or set ELIZA_LITERT_TIMEOUT to more "
                                        "seconds where the device is slow");
}

void stay_loaded() noexcept {
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&stay_loaded), &self) == 0 || self.dli_fname == nullptr) return;
  dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

}  // namespace eliza::litert_lm
