#include "native/text/context-size.h"

#include <limits>
#include <optional>

#include "native/base/environment.h"

namespace eliza {

int32_t context_size_of([[maybe_unused]] const eliza_llm_stream_config_t& config) {
#if ELIZA_INFERENCE_ABI_VERSION >= 15
  return config.context_size;
#else
  return 0;
#endif
}

RequestedContext requested_context(int32_t config_size, int32_t manifest_size) {
  const std::optional<int64_t> from_environment =
      number_variable("ELIZA_CONTEXT_SIZE", 1, std::numeric_limits<int32_t>::max(), "a number of tokens, 1 or more");
  if (config_size > 0) return {config_size, "context_size"};
  if (manifest_size > 0) return {manifest_size, "the manifest's ctx"};
  if (from_environment) return {static_cast<int32_t>(*from_environment), "ELIZA_CONTEXT_SIZE"};
  return {};
}

}  // namespace eliza
