// How many contexts, streams and models there are in this process: a leak of one shows in its count. Read through
// eliza_inference_llm_backend_report (docs/backends.md).
#pragma once

#include <atomic>

namespace eliza {

enum class Live { kContexts, kStreams, kModels };

inline std::atomic<int> live_counts[3] = {0, 0, 0};  // constants: without them, code would run at load

inline int live_count(Live kind) { return live_counts[static_cast<int>(kind)]; }

// A member of each object that is counted.
class LiveCount {
 public:
  explicit LiveCount(Live kind) noexcept : kind_(kind) { ++live_counts[static_cast<int>(kind_)]; }
  ~LiveCount() { --live_counts[static_cast<int>(kind_)]; }
  LiveCount(const LiveCount&) = delete;
  LiveCount& operator=(const LiveCount&) = delete;

 private:
  const Live kind_;
};

}  // namespace eliza
