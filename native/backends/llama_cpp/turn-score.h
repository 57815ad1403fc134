// What eliza_inference_llm_eot_score answers.
#pragma once

#include <cstdint>

namespace eliza::llama_cpp {

struct TurnScore {
  float target_probability = 0;
  int32_t top_token = 0;
  float top_probability = 0;
};

}  // namespace eliza::llama_cpp
