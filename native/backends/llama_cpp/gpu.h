// The GPUs of this host, for llama.cpp: looked for when a stream first asks for layers on one, and never before, since
// looking wakes a driver that takes memory, seconds and, where it is broken, the process.
#pragma once

#include <string>
#include <vector>

#include "ggml-backend.h"

namespace eliza::llama_cpp {

struct Gpus {
  std::vector<ggml_backend_dev_t> devices;  // empty: there is none to use
  std::string reason;                       // why not, as a phrase; empty where there are devices
};

// Wakes the GPUs that this build has code for, at the first call. Thread-safe; the answer does not change.
const Gpus& gpus();

// A device as its users know it: "CUDA0 (NVIDIA H200)"; of several, in a list with commas.
std::string device_name(ggml_backend_dev_t device);
std::string device_names(const std::vector<ggml_backend_dev_t>& devices);

}  // namespace eliza::llama_cpp
