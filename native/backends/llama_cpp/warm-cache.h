// Contexts that outlive their streams, for the next stream with the same prompt_cache_key and slot_id.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "native/backends/llama_cpp/context.h"

namespace eliza::llama_cpp {

// Thread-safe. Bounded: at most kMostContexts, and at most a quarter of the memory that is available when one is put
// in; the least recently used goes first. What it holds keeps the model loaded.
class WarmCache {
 public:
  static constexpr size_t kMostContexts = 8;

  struct Key {
    std::string name;  // prompt_cache_key
    int32_t slot = 0;  // slot_id
    bool operator==(const Key& other) const { return name == other.name && slot == other.slot; }
  };

  // The context that was put in under `key`, if it is of this model and of these options; nullptr otherwise. It is the
  // caller's then: a second stream with the same key starts cold.
  std::unique_ptr<Context> take(const Key& key, const Model& model, const Context::Options& options);

  // Replaces what is there under `key`.
  void put(const Key& key, std::unique_ptr<Context> context);

 private:
  struct Entry {
    Key key;
    std::unique_ptr<Context> context;
  };

  void evict(uint64_t most_bytes);

  std::mutex mutex_;
  std::list<Entry> entries_;  // the most recently used first
};

}  // namespace eliza::llama_cpp
