#include "native/backends/llama_cpp/warm-cache.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "native/base/memory-info.h"

namespace eliza::llama_cpp {

std::unique_ptr<Context> WarmCache::take(const Key& key, const Model& model, const Context::Options& options) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.key == key && &entry.context->model() == &model && entry.context->options() == options;
  });
  if (found == entries_.end()) return nullptr;
  std::unique_ptr<Context> context = std::move(found->context);
  entries_.erase(found);
  return context;
}

void WarmCache::put(const Key& key, std::unique_ptr<Context> context) {
  std::list<Entry> entry;
  entry.push_back({key, std::move(context)});
  const std::lock_guard<std::mutex> lock(mutex_);
  entries_.remove_if([&](const Entry& other) { return other.key == key; });
  entries_.splice(entries_.begin(), entry);
  uint64_t held = 0;
  for (const Entry& other : entries_) held += other.context->bytes();
  const std::optional<uint64_t> available = available_memory();
  evict(available ? (*available + held) / 4 : std::numeric_limits<uint64_t>::max());
}

void WarmCache::evict(uint64_t most_bytes) {
  uint64_t bytes = 0;
  size_t count = 0;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    bytes += entry->context->bytes();
    ++count;
    entry = bytes > most_bytes || count > kMostContexts ? entries_.erase(entry) : std::next(entry);
  }
}

}  // namespace eliza::llama_cpp
