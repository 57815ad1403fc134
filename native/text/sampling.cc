#include "native/text/sampling.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "native/base/error.h"
#include "native/base/number-text.h"

namespace eliza {
namespace {

[[noreturn]] void reject(const std::string& problem) {
  throw Error(ELIZA_ERR_INVALID_ARG, "stream config: " + problem);
}

void require_at_least(const char* field, int32_t value, int32_t minimum, const char* advice) {
  if (value >= minimum) return;
  reject(std::string(field) + " is " + std::to_string(value) + "; it must be >= " + std::to_string(minimum) + " (" +
         advice + ")");
}

}  // namespace

SamplingSettings sampling_settings(const eliza_llm_stream_config_t& config) {
  // Divided by less, logits become infinite, and the difference of two is no number.
  constexpr float kLeastTemperature = 1e-5f;
  constexpr float kMostPenalty = 1e4f;
  // Comparisons with NaN are false, so NaN is off.
  SamplingSettings settings;
  settings.temperature = config.temperature < kLeastTemperature ? 0.0f : config.temperature;
  settings.top_p = config.top_p > 0.0f && config.top_p < 1.0f ? config.top_p : 1.0f;
  settings.top_k = config.top_k;
  settings.repeat_penalty =
      config.repeat_penalty > 0.0f ? std::clamp(config.repeat_penalty, 1 / kMostPenalty, kMostPenalty) : 1.0f;
  return settings;
}

void validate_stream_config(const eliza_llm_stream_config_t* config) {
  if (config == nullptr) reject("the pointer is null; pass a config, ELIZA_LLM_STREAM_CONFIG_DEFAULT for the defaults");
  require_at_least("max_tokens", config->max_tokens, 0, "0: until the end of the text or a full context");
  if (!std::isfinite(config->temperature) || config->temperature < 0.0f) {
    reject("temperature is " + number_text(config->temperature) + "; it must be a finite number >= 0 (0: greedy)");
  }
  require_at_least("top_k", config->top_k, 0, "0: off");
  if (std::isinf(config->repeat_penalty) && config->repeat_penalty > 0.0f) {
    reject("repeat_penalty is inf; it must be finite (<= 0 or 1: off)");
  }
  require_at_least("slot_id", config->slot_id, -1, "-1: none");
  require_at_least("draft_min", config->draft_min, 0, "the fewest tokens to draft per step");
  require_at_least("draft_max", config->draft_max, 0, "0: no drafting");
  if (config->draft_min > config->draft_max) {
    reject("draft_min is " + std::to_string(config->draft_min) + " and draft_max " + std::to_string(config->draft_max) +
           "; draft_min must be <= draft_max (both 0: no drafting)");
  }
  require_at_least("n_gpu_layers", config->n_gpu_layers, -1, "-1: all layers, 0: CPU only");
#if ELIZA_INFERENCE_ABI_VERSION >= 15
  require_at_least("context_size", config->context_size, 0, "0: the bundle's, else the model's own");
#endif
}

}  // namespace eliza
