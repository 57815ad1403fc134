// The host's cuBLAS and its driver, found when they are first asked for and not when the library is loaded.
#pragma once

#include <string>

namespace eliza::cuda {

// Opens the NVIDIA driver and cuBLAS, once. Returns what is missing, as a phrase that says what to do, and "" where
// both are there. Thread-safe.
std::string missing_libraries();

}  // namespace eliza::cuda
