// Objects that take long to make and that users share: each is made once for its key, and freed with its last user.
#pragma once

#include <condition_variable>
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
    return acquire(key, std::forward<Make>(make), [] {});
  }

  // The same for a caller that may have to give up while another makes the object: `check` throws then. It is called
  // before the wait and after each wake; it must not use the cache.
  template <typename Make, typename Check>
  std::shared_ptr<Object> acquire(const Key& key, Make&& make, Check&& check) {
    std::unique_lock<std::mutex> lock(mutex_);
    const std::shared_ptr<Slot> slot = slot_for(key);
    for (check(); slot->making; check()) changed_.wait(lock);
    if (std::shared_ptr<Object> object = slot->object.lock()) return object;
    slot->making = true;
    lock.unlock();

    const Making making(this, slot.get());
    std::shared_ptr<Object> object = std::forward<Make>(make)();
    making.finish(object);
    return object;
  }

  // So that whoever waits calls its `check`.
  void wake() {
    // Under the lock, so that nobody is between a check and the wait.
    const std::lock_guard<std::mutex> lock(mutex_);
    changed_.notify_all();
  }

  // An object whose key `fits`; nullptr where there is none. Waits for none that is being made.
  template <typename Fits>
  std::shared_ptr<Object> find(Fits&& fits) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [key, slot] : slots_) {
      if (!fits(key)) continue;
      if (std::shared_ptr<Object> object = slot->object.lock()) return object;
    }
    return nullptr;
  }

 private:
  struct Slot {
    bool making = false;
    std::weak_ptr<Object> object;
  };

  // The making of an object, however it ends.
  class Making {
   public:
    Making(SharedCache* cache, Slot* slot) : cache_(cache), slot_(slot) {}
    ~Making() {
      const std::lock_guard<std::mutex> lock(cache_->mutex_);
      slot_->making = false;
      cache_->changed_.notify_all();
    }
    Making(const Making&) = delete;
    Making& operator=(const Making&) = delete;

    void finish(const std::shared_ptr<Object>& object) const {
      const std::lock_guard<std::mutex> lock(cache_->mutex_);
      slot_->object = object;
    }

   private:
    SharedCache* const cache_;
    Slot* const slot_;
  };

  std::shared_ptr<Slot> slot_for(const Key& key) {
    for (auto entry = slots_.begin(); entry != slots_.end();) {
      // Nobody makes it or waits for it (the table has the only reference), and nobody has it.
      const bool dead = entry->second.use_count() == 1 && entry->second->object.expired();
      entry = dead ? slots_.erase(entry) : std::next(entry);
    }
    std::shared_ptr<Slot>& slot = slots_[key];
    if (slot == nullptr) slot = std::make_shared<Slot>();
    return slot;
  }

  std::mutex mutex_;  // of all below; not held while an object is made
  std::condition_variable changed_;
  std::map<Key, std::shared_ptr<Slot>> slots_;
};

}  // namespace eliza
