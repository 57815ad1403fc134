// The sampling settings of a stream, normalised: what every backend takes from eliza_llm_stream_config_t.
#pragma once

#include <cstdint>

#include "native/include/eliza-inference-ffi.h"

namespace eliza {

struct SamplingSettings {
  float temperature = 0.0f;     // 0: greedy
  float top_p = 1.0f;           // in (0, 1]; 1: off
  int32_t top_k = 0;            // 0: off
  float repeat_penalty = 1.0f;  // > 0; 1: off

  bool greedy() const { return temperature == 0.0f; }
};

// Tokens a repeat penalty looks back on; llama.cpp's default (common_params_sampling::penalty_last_n).
inline constexpr int32_t kRepeatPenaltyWindow = 64;

// The settings of a config: top_p <= 0, NaN or > 1 means 1; repeat_penalty <= 0 or NaN means 1, and it is 1e-4 to 1e4;
// a temperature below 1e-5 is 0, since the likeliest token is then the only one.
// Expects a config that validate_stream_config accepted.
SamplingSettings sampling_settings(const eliza_llm_stream_config_t& config);

// Throws Error(ELIZA_ERR_INVALID_ARG) naming the field, its value and its range where a config cannot be meant:
// null; negative max_tokens, top_k, draft_min, draft_max or context_size; negative or non-finite temperature;
// repeat_penalty of +infinity; draft_min > draft_max; n_gpu_layers < -1; slot_id < -1.
void validate_stream_config(const eliza_llm_stream_config_t* config);

}  // namespace eliza
