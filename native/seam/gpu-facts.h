// What the report says about GPUs: found by llama.cpp's backend, written by report.h, brought together by the FFI.
#pragma once

#include <string>
#include <vector>

namespace eliza {

struct GpuFacts {
  std::vector<std::string> devices;  // those that n_gpu_layers can put layers on
  std::string reason;                // why there is none, as a phrase
};

}  // namespace eliza
