// Objects that take long to make and that users share: each is made once for its key, and freed with its last user.
#pragma once

#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace eliza {

// Any thread. Concurrent calls for one key make its object once; those for different keys make theirs side by side.
template <typename Key, typename Object>
class SharedCache {
 public:
  // The object of `key`; where there is none, what `make` returns, a shared_ptr. Throws what `make` throws.
  template <typename Make>
  std::shared_ptr<Object> acquire(const Key& key, Make&& make) {
    const std::shared_ptr<Slot> slot = slot_for(key);
    const std::lock_guard<std::mutex> lock(slot->making);
    std::shared_ptr<Object> object = slot->get();
    if (object == nullptr) {
      object = std::forward<Make>(make)();
      slot->set(object);
    }
    return object;
  }

  // An object whose key `fits`; nullptr where there is none. Waits for none that is being made.
  template <typename Fits>
  std::shared_ptr<Object> find(Fits&& fits) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [key, slot] : slots_) {
      if (!fits(key)) continue;
      if (std::shared_ptr<Object> object = slot->get()) return object;
    }
    return nullptr;
  }

 private:
  struct Slot {
    std::mutex making;  // held while it is made

    // Its own lock, so that looking for an object does not wait for one that is being made.
    std::mutex object_mutex;
    std::weak_ptr<Object> object;

    void set(const std::shared_ptr<Object>& made) {
      const std::lock_guard<std::mutex> lock(object_mutex);
      object = made;
    }
    std::shared_ptr<Object> get() {
      const std::lock_guard<std::mutex> lock(object_mutex);
      return object.lock();
    }
  };

  std::shared_ptr<Slot> slot_for(const Key& key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto entry = slots_.begin(); entry != slots_.end();) {
      // Nobody makes it (the table has the only reference) and nobody has it.
      const bool dead = entry->second.use_count() == 1 && entry->second->get() == nullptr;
      entry = dead ? slots_.erase(entry) : std::next(entry);
    }
    std::shared_ptr<Slot>& slot = slots_[key];
    if (slot == nullptr) slot = std::make_shared<Slot>();
    return slot;
  }

  std::mutex mutex_;
  std::map<Key, std::shared_ptr<Slot>> slots_;
};

}  // namespace eliza
