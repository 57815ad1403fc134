#include "native/text/context-fit.h"

#include <algorithm>
#include <optional>

#include "native/base/error.h"
#include "native/base/memory-info.h"
#include "native/text/context-size.h"

namespace eliza {
namespace {

// The most tokens, at most `limit`, whose cache fits into `available` bytes.
uint32_t largest_fit(uint32_t limit, uint64_t available, const std::function<uint64_t(uint32_t)>& bytes) {
  uint32_t low = 0, high = limit;
  while (low < high) {
    const uint32_t middle = low + (high - low + 1) / 2;
    if (bytes(middle) <= available) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace

std::string mebibytes(uint64_t bytes) { return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB"; }

uint32_t choose_context_size(const ContextWish& wish, const std::function<uint64_t(uint32_t)>& bytes) {
  std::optional<uint64_t> available = available_memory();
  if (available) *available -= std::min(*available, wish.reserved);
  const RequestedContext asked = requested_context(wish.config_size, wish.manifest_size);
  if (asked.tokens > 0) {
    const uint32_t size = static_cast<uint32_t>(asked.tokens);
    const uint64_t needed = bytes(size);
    if (available && needed > *available) {
      throw Error(ELIZA_ERR_OOM, std::string(asked.source) + " is " + std::to_string(size) +
                                     " tokens, which needs about " + mebibytes(needed) + " where " +
                                     mebibytes(*available) + " of memory are available" +
                                     (wish.reserved > 0 ? " besides the model's weights" : "") + "; about " +
                                     std::to_string(largest_fit(size, *available, bytes)) + " tokens fit" +
                                     (wish.advice.empty() ? "" : ", ") + wish.advice);
    }
    return size;
  }
  const uint32_t trained = std::max(1u, wish.trained);
  if (!available) return trained;
  // Half, since the host has uses of its own for memory, and so have further sessions. Where the least does not fit,
  // the allocation says so.
  return std::max(std::min(trained, kLeastContext), largest_fit(trained, *available / 2, bytes));
}

}  // namespace eliza
