// What the opaque pointers of the C ABI stand for.
//
// A handle is an id, not an address: its low three bits say what kind of object it is, the rest is a serial number that
// is never used twice. So a handle that is closed, of another kind or made up is recognised, and named, without a
// dereference. Ids stay below 2^53, for clients that keep them in a double.
//
// The table also settles who ends an object, and when. A call pins the object it works on. Closing a handle makes it
// invalid at once, closes the handles opened under it (the streams of a context), asks the calls in flight to stop and
// waits for them; the last one out deletes the object. A close that comes from inside a call, which is to say from
// a callback, cannot wait for that call: it returns at once, and the object ends with the call.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace eliza {

enum class HandleKind : uint8_t { kContext = 1, kLlmStream };
inline constexpr int kHandleKinds = 8;  // that three bits can tell apart; 0 is none, so that NULL is no handle

// An object behind a handle.
class HandleObject {
 public:
  virtual ~HandleObject() = default;

  // The handle has been closed: calls in flight, on other threads, should return soon. Called once.
  virtual void stop() noexcept {}
};

class HandleTable {
  struct Entry;

 public:
  // Keeps an object alive for the length of a call. Released on the thread that made it.
  class Pin {
   public:
    Pin(Pin&& other) noexcept : table_(std::exchange(other.table_, nullptr)), id_(other.id_), object_(other.object_) {}
    Pin& operator=(Pin&&) = delete;
    ~Pin();

    HandleObject* object() const { return object_; }

   private:
    friend class HandleTable;
    Pin(HandleTable* table, uintptr_t id, HandleObject* object);

    HandleTable* table_;
    uintptr_t id_;
    HandleObject* object_;
  };

  HandleTable() = default;
  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;

  // The handle of `object`, which the table owns from here on. With a `parent`, a handle that the caller has pinned and
  // that has no parent itself, it is closed no later than that one, and deleted before. Throws
  // Error(ELIZA_ERR_CANCELLED) where the parent has been closed meanwhile.
  uintptr_t add(HandleKind kind, std::unique_ptr<HandleObject> object, uintptr_t parent = 0);

  // Throws Error(ELIZA_ERR_INVALID_ARG) that says what `id` is instead, where it is no open handle of that kind.
  Pin pin(HandleKind kind, uintptr_t id);

  // Closes the handle and those under it; see above. False, with nothing done, where `id` is no open handle of that
  // kind.
  bool close(HandleKind kind, uintptr_t id);

 private:
  using Entries = std::map<uintptr_t, Entry>;

  struct Entry {
    std::unique_ptr<HandleObject> object;
    uintptr_t parent;
    int pins = 0;  // calls in flight, and children
    bool closed = false;
  };

  Entries::iterator find_open(HandleKind kind, uintptr_t id);
  [[noreturn]] void refuse(HandleKind expected, uintptr_t id) const;
  void stop(std::unique_lock<std::mutex>* lock, Entries::iterator entry) noexcept;
  void unpin(std::unique_lock<std::mutex>* lock, uintptr_t id) noexcept;

  std::mutex mutex_;
  std::condition_variable erased_;
  Entries entries_;  // a tree, for it holds no memory when empty: a library that is unloaded leaves nothing behind
  uintptr_t last_serial_[kHandleKinds] = {};
};

// The table behind the C ABI.
HandleTable& handle_table();

// How many pins this thread holds, which is how many calls it is inside of: whoever finds one that is not its own was
// called back, and may not wait for a call.
int pins_of_this_thread();

}  // namespace eliza
