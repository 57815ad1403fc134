// How many tokens of context a stream gets where a backend allocates the KV cache itself: what was asked for
// (context-size.h), as far as there is memory for it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace eliza {

// No less makes a stream useful: what one gets at least where nobody asks.
inline constexpr uint32_t kLeastContext = 512;

struct ContextWish {
  int32_t config_size = 0;    // the stream config's context_size; 0: not given
  int32_t manifest_size = 0;  // the manifest's ctx; 0: not given
  uint32_t trained = 0;       // what the model was trained on
  uint64_t reserved = 0;      // bytes that the model's weights will take: 0 once they are loaded
  std::string advice;         // what to do where the wish does not fit into memory; may be empty
};

// The first that is given of the config's context_size, the manifest's ctx and ELIZA_CONTEXT_SIZE; else what the model
// was trained on, as far as half of the free memory goes. `bytes` says what a context of so many tokens needs.
// Throws Error: ELIZA_ERR_OOM with the estimate where what was asked for does not fit into memory.
uint32_t choose_context_size(const ContextWish& wish, const std::function<uint64_t(uint32_t)>& bytes);

// "12 MiB", rounded up.
std::string mebibytes(uint64_t bytes);

}  // namespace eliza
