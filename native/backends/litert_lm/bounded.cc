#include "native/backends/litert_lm/bounded.h"

#include <dlfcn.h>

#include <cstdint>

#include "native/base/environment.h"

namespace eliza::litert_lm {

std::chrono::seconds wait_limit() {
  constexpr int64_t kDefault = 120;
  return std::chrono::seconds(
      number_variable("ELIZA_LITERT_TIMEOUT", 1, 3600, "a number of seconds from 1 to 3600").value_or(kDefault));
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
