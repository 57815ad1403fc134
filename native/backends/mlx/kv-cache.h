// The keys and values of one layer's past: all of it, or a window that moves along.
//
// A full cache grows in steps and keeps every position. A rotating one keeps what a sliding window can see: up to its
// window after a decode step, and up to a prefill chunk more after a prefill. Both can be cut back, the rotating one
// only as long as all that the window sees from the new end is still there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "native/backends/mlx/mlx-core.h"

namespace eliza::mlx {

// What a layer keeps, by its config.
struct CacheShape {
  int64_t window = 0;  // positions that its attention sees; 0: all
  int64_t heads = 0;
  int64_t head = 0;  // values of a key, and of a value
};

// What attention may look at; see mx::fast::scaled_dot_product_attention.
struct Mask {
  std::string mode;
  std::optional<mx::array> array;
};

class KvCache {
 public:
  explicit KvCache(const CacheShape& shape) : shape_(shape) {}

  int offset() const { return offset_; }  // positions so far: the next one's number

  // The mask of the next `count` positions over what update will return for them.
  Mask mask(int count) const;

  // Adds the keys and values [1, heads, count, head] of the next positions, and returns all that these may see.
  std::pair<mx::array, mx::array> update(const mx::array& keys, const mx::array& values);

  // Whether the first `count` positions can be kept, and no others.
  bool can_truncate(int count) const;
  void truncate(int count);

  void clear();

  // Keys and values in the order of positions, the last of which is offset() - 1; nullopt where there are none.
  std::optional<std::pair<mx::array, mx::array>> ordered() const;

  // Makes it so again. The arrays hold the last of `offset` positions.
  void restore(const mx::array& keys, const mx::array& values, int offset);

  // What to evaluate so that a later step depends on nothing unevaluated.
  void append_arrays(std::vector<mx::array>* arrays) const;

 private:
  struct Half {
    mx::array keys;
    mx::array values;
  };

  int used() const { return offset_ - start_; }
  int visible_before() const;  // how many of the past the first of several new positions sees
  mx::array in_order(const mx::array& buffer, int count) const;
  void grow(const mx::array& keys, const mx::array& values);
  void start_ring();
  std::pair<mx::array, mx::array> update_one(const mx::array& keys, const mx::array& values);
  std::pair<mx::array, mx::array> update_many(const mx::array& keys, const mx::array& values);
  std::pair<mx::array, mx::array> append(const mx::array& keys, const mx::array& values);

  CacheShape shape_;
  std::optional<Half> buffer_;
  int start_ = 0;   // the first position in the buffer
  int offset_ = 0;  // the first that is not
  // Whether the buffer is a ring of `window` rows, `head_` the next to be written. Otherwise row i is start_ + i.
  bool ring_ = false;
  int head_ = 0;
};

// softmax(q k^T * scale) v over what the mask allows.
mx::array attend(const mx::array& queries, const mx::array& keys, const mx::array& values, double scale,
                 const Mask& mask);

}  // namespace eliza::mlx
