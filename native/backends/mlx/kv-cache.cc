#include "native/backends/mlx/kv-cache.h"

#include <algorithm>
#include <vector>

namespace eliza::mlx {
namespace {

constexpr int kStep = 256;  // rows that a buffer grows by

mx::array rows(const mx::array& buffer, int begin, int end) {
  if (begin == 0 && end == buffer.shape(2)) return buffer;
  return mx::slice(buffer, {0, 0, begin, 0}, {1, buffer.shape(1), end, buffer.shape(3)});
}

mx::array with_rows(const mx::array& buffer, const mx::array& update, int begin) {
  return mx::slice_update(buffer, update, mx::Shape{0, 0, begin, 0},
                          mx::Shape{1, buffer.shape(1), begin + update.shape(2), buffer.shape(3)});
}

mx::array with_more_rows(const mx::array& buffer, int count) {
  const mx::array more = mx::zeros({1, buffer.shape(1), count, buffer.shape(3)}, buffer.dtype());
  return buffer.shape(2) == 0 ? more : mx::concatenate({buffer, more}, 2);
}

}  // namespace

int KvCache::visible_before() const {
  return shape_.window == 0 ? used() : std::min(used(), static_cast<int>(shape_.window) - 1);
}

Mask KvCache::mask(int count) const {
  if (count == 1) return {};  // what update returns is what it sees
  const int before = visible_before();
  const int window = static_cast<int>(shape_.window);
  if (window == 0 || before + count <= window) return {"causal", std::nullopt};
  const mx::array from = mx::reshape(mx::arange(before, before + count, mx::int32), {count, 1});
  const mx::array to = mx::reshape(mx::arange(0, before + count, mx::int32), {1, before + count});
  return {"", mx::logical_and(mx::greater_equal(from, to), mx::less(from, to + mx::array(window)))};
}

std::pair<mx::array, mx::array> KvCache::update(const mx::array& keys, const mx::array& values) {
  if (shape_.window == 0) return append(keys, values);
  return keys.shape(2) == 1 ? update_one(keys, values) : update_many(keys, values);
}

// Makes room for the rows of `keys` behind those in use.
void KvCache::grow(const mx::array& keys, const mx::array& values) {
  const int needed = used() + keys.shape(2);
  const int present = buffer_ ? buffer_->keys.shape(2) : 0;
  if (needed <= present) return;
  int more = (needed - used() + kStep - 1) / kStep * kStep;
  if (shape_.window != 0) more = std::min(more, static_cast<int>(shape_.window) - used());
  const auto grown = [&](const mx::array& like, const mx::array* buffer) {
    if (buffer == nullptr) return mx::zeros({1, like.shape(1), more, like.shape(3)}, like.dtype());
    return with_more_rows(rows(*buffer, 0, used()), more);
  };
  buffer_ = Half{grown(keys, buffer_ ? &buffer_->keys : nullptr), grown(values, buffer_ ? &buffer_->values : nullptr)};
}

// Rows behind those in use, in a buffer that is no ring.
std::pair<mx::array, mx::array> KvCache::append(const mx::array& keys, const mx::array& values) {
  grow(keys, values);
  buffer_ = Half{with_rows(buffer_->keys, keys, used()), with_rows(buffer_->values, values, used())};
  offset_ += keys.shape(2);
  return {rows(buffer_->keys, 0, used()), rows(buffer_->values, 0, used())};
}

// The last `window` rows, of which the first is the next to be written over.
void KvCache::start_ring() {
  const int window = static_cast<int>(shape_.window);
  const int end = used();
  buffer_ = Half{rows(buffer_->keys, end - window, end), rows(buffer_->values, end - window, end)};
  start_ = offset_ - window;
  ring_ = true;
  head_ = 0;
}

std::pair<mx::array, mx::array> KvCache::update_one(const mx::array& keys, const mx::array& values) {
  const int window = static_cast<int>(shape_.window);
  if (!ring_ && used() < window) return append(keys, values);
  if (!ring_) start_ring();
  buffer_ = Half{with_rows(buffer_->keys, keys, head_), with_rows(buffer_->values, values, head_)};
  head_ = (head_ + 1) % window;
  ++offset_;
  start_ = offset_ - window;
  return {buffer_->keys, buffer_->values};
}

std::pair<mx::array, mx::array> KvCache::update_many(const mx::array& keys, const mx::array& values) {
  const int before = visible_before();
  if (before == 0) {
    buffer_ = Half{keys, values};
  } else {
    buffer_ = Half{mx::concatenate({in_order(buffer_->keys, before), keys}, 2),
                   mx::concatenate({in_order(buffer_->values, before), values}, 2)};
  }
  ring_ = false;
  start_ = offset_ - before;
  offset_ += keys.shape(2);
  return {buffer_->keys, buffer_->values};
}

// The rows of the last `count` positions, in their order.
mx::array KvCache::in_order(const mx::array& buffer, int count) const {
  if (!ring_) return rows(buffer, used() - count, used());
  const int window = static_cast<int>(shape_.window);
  const int begin = (head_ - count + window) % window;
  if (begin < head_) return rows(buffer, begin, head_);
  if (head_ == 0) return rows(buffer, begin, window);
  return mx::concatenate({rows(buffer, begin, window), rows(buffer, 0, head_)}, 2);
}

bool KvCache::can_truncate(int count) const {
  if (count == 0 || count >= offset_ || shape_.window == 0) return true;
  return start_ <= std::max(0, count - static_cast<int>(shape_.window) + 1);
}

void KvCache::truncate(int count) {
  if (count >= offset_) return;
  if (count == 0) return clear();
  if (ring_) {
    const int window = static_cast<int>(shape_.window);
    head_ = (head_ - (offset_ - count) % window + window) % window;
  }
  offset_ = count;
}

void KvCache::clear() { *this = KvCache(shape_); }

std::optional<std::pair<mx::array, mx::array>> KvCache::ordered() const {
  if (used() == 0) return std::nullopt;
  return std::make_pair(in_order(buffer_->keys, used()), in_order(buffer_->values, used()));
}

void KvCache::restore(const mx::array& keys, const mx::array& values, int offset) {
  clear();
  buffer_ = Half{keys, values};
  offset_ = offset;
  start_ = offset - keys.shape(2);
}

void KvCache::append_arrays(std::vector<mx::array>* arrays) const {
  if (!buffer_) return;
  arrays->push_back(buffer_->keys);
  arrays->push_back(buffer_->values);
}

mx::array attend(const mx::array& queries, const mx::array& keys, const mx::array& values, double scale,
                 const Mask& mask) {
  return mx::fast::scaled_dot_product_attention(queries, keys, values, static_cast<float>(scale), mask.mode,
                                                mask.array);
}

}  // namespace eliza::mlx
