#include "native/ffi/handle-table.h"

#include <algorithm>
#include <new>
#include <string>

#include "native/base/error.h"

namespace eliza {
namespace {

constexpr int kKindBits = 3;
static_assert(1 << kKindBits == kHandleKinds);

struct KindText {
  const char* name;
  const char* opened_by;
};

constexpr KindText kKindTexts[kHandleKinds] = {
    {},
    {"context", "eliza_inference_create"},
    {"LLM stream", "eliza_inference_llm_stream_open"},
};

thread_local int pins_held = 0;

}  // namespace

int pins_of_this_thread() { return pins_held; }

HandleTable::Pin::Pin(HandleTable* table, uintptr_t id, HandleObject* object)
    : table_(table), id_(id), object_(object) {
  ++pins_held;
}

HandleTable::Pin::~Pin() {
  if (table_ == nullptr) return;
  --pins_held;
  std::unique_lock<std::mutex> lock(table_->mutex_);
  table_->unpin(&lock, id_);
}

uintptr_t HandleTable::add(HandleKind kind, std::unique_ptr<HandleObject> object, uintptr_t parent) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto parent_entry = entries_.find(parent);
  if (parent != 0 && (parent_entry == entries_.end() || parent_entry->second.closed)) {
    throw Error(ELIZA_ERR_CANCELLED, "the " + std::string(kKindTexts[parent & (kHandleKinds - 1)].name) +
                                         " was closed while this call opened something on it");
  }
  const int kind_bits = static_cast<int>(kind);
  const uintptr_t id = (last_serial_[kind_bits] + 1) << kKindBits | kind_bits;
  entries_.emplace(id, Entry{std::move(object), parent});
  ++last_serial_[kind_bits];
  if (parent != 0) ++parent_entry->second.pins;
  return id;
}

HandleTable::Pin HandleTable::pin(HandleKind kind, uintptr_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto entry = find_open(kind, id);
  if (entry == entries_.end()) refuse(kind, id);
  ++entry->second.pins;
  return Pin(this, id, entry->second.object.get());
}

bool HandleTable::close(HandleKind kind, uintptr_t id) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto entry = find_open(kind, id);
  if (entry == entries_.end()) return false;
  stop(&lock, entry);  // first, so that from here on nothing is added under it
  const auto is_open_child = [id](const Entries::value_type& other) {
    return other.second.parent == id && !other.second.closed;
  };
  for (;;) {
    const auto child = std::find_if(entries_.begin(), entries_.end(), is_open_child);
    if (child == entries_.end()) break;
    stop(&lock, child);
  }
  // Children pin their parent, so its entry is the last to go.
  if (pins_held == 0) erased_.wait(lock, [this, id] { return entries_.find(id) == entries_.end(); });
  return true;
}

HandleTable::Entries::iterator HandleTable::find_open(HandleKind kind, uintptr_t id) {
  const auto entry = entries_.find(id);
  const bool of_kind = (id & (kHandleKinds - 1)) == static_cast<uintptr_t>(kind);
  return entry != entries_.end() && of_kind && !entry->second.closed ? entry : entries_.end();
}

// Expects that find_open found nothing.
void HandleTable::refuse(HandleKind expected, uintptr_t id) const {
  const KindText& wanted = kKindTexts[static_cast<int>(expected)];
  const uintptr_t kind_bits = id & (kHandleKinds - 1);
  const uintptr_t serial = id >> kKindBits;
  std::string what;
  if (id == 0) {
    what = "NULL";
  } else if (serial == 0 || serial > last_serial_[kind_bits]) {
    what = std::to_string(id) + " (no handle of this library)";
  } else {
    const auto entry = entries_.find(id);
    const bool closed = entry == entries_.end() || entry->second.closed;
    what = std::to_string(id) + (closed ? " (closed " : " (") + kKindTexts[kind_bits].name + ")";
  }
  throw Error(ELIZA_ERR_INVALID_ARG, std::string("expected an open ") + wanted.name + ", got " + what + "; pass what " +
                                         wanted.opened_by + " returned, until it is closed");
}

void HandleTable::stop(std::unique_lock<std::mutex>* lock, Entries::iterator entry) noexcept {
  const uintptr_t id = entry->first;
  entry->second.closed = true;
  ++entry->second.pins;
  lock->unlock();
  entry->second.object->stop();
  lock->lock();
  unpin(lock, id);
}

void HandleTable::unpin(std::unique_lock<std::mutex>* lock, uintptr_t id) noexcept {
  while (id != 0) {
    const auto entry = entries_.find(id);
    if (--entry->second.pins > 0 || !entry->second.closed) return;
    // Nobody can reach the object any more, but it may take its time to end (a worker thread, a device): not under the
    // lock that every call needs. The entry stays until then, since close waits for it.
    std::unique_ptr<HandleObject> object = std::move(entry->second.object);
    lock->unlock();
    object.reset();
    lock->lock();
    const uintptr_t parent = entry->second.parent;
    entries_.erase(entry);
    erased_.notify_all();
    id = parent;
  }
}

HandleTable& handle_table() {
  // Never destroyed, since threads may be in a call while the process exits; and in static storage, since a library
  // that is loaded and unloaded again and again may not leave something behind each time.
  alignas(HandleTable) static unsigned char storage[sizeof(HandleTable)];
  static HandleTable* const table = new (storage) HandleTable;
  return *table;
}

}  // namespace eliza
