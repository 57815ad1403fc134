#include "native/text/context-size.h"

#include <cerrno>
#include <cstdlib>
#include <limits>
#include <string>

#include "native/base/error.h"

namespace eliza {
namespace {

// ELIZA_CONTEXT_SIZE; 0: not set.
int32_t size_from_environment() {
  const char* value = std::getenv("ELIZA_CONTEXT_SIZE");
  if (value == nullptr || *value == '\0') return 0;
  char* end = nullptr;
  errno = 0;
  const long size = std::strtol(value, &end, 10);
  if (errno != 0 || end == value || *end != '\0' || size < 1 || size > std::numeric_limits<int32_t>::max()) {
    throw Error(ELIZA_ERR_INVALID_ARG, "ELIZA_CONTEXT_SIZE is '" + std::string(value) +
                                           "': set it to a number of tokens, 1 or more, or unset it");
  }
  return static_cast<int32_t>(size);
}

}  // namespace

int32_t context_size_of([[maybe_unused]] const eliza_llm_stream_config_t& config) {
#if ELIZA_INFERENCE_ABI_VERSION >= 15
  return config.context_size;
#else
  return 0;
#endif
}

RequestedContext requested_context(int32_t config_size, int32_t manifest_size) {
  const int32_t from_environment = size_from_environment();
  if (config_size > 0) return {config_size, "context_size"};
  if (manifest_size > 0) return {manifest_size, "the manifest's ctx"};
  if (from_environment > 0) return {from_environment, "ELIZA_CONTEXT_SIZE"};
  return {};
}

}  // namespace eliza
