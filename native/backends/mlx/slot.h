// A saved stream as a file: a safetensors file, so that others can look into it.
//
//   tokens                    int32, the whole context
//   layer.N.keys, .values     the rows of each cache, in the order of positions
//   __metadata__              what has to fit (format, model), how far the context was computed and delivered, and a
//                             checksum of everything else in the file
//
// Everything is checked before anything is used: a truncated, foreign, newer or altered file is an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "native/backends/mlx/kv-cache.h"
#include "native/backends/mlx/mlx-core.h"

namespace eliza::mlx {

struct SavedStream {
  std::vector<int32_t> tokens;
  uint64_t cached = 0;   // the first so many are in the caches
  uint64_t visible = 0;  // the first so many were delivered to the caller
  std::vector<KvCache> caches;
};

// The file's bytes, for `model` (LoadedModel::fingerprint). On the model's worker thread.
std::string slot_bytes(uint64_t model, const SavedStream& stream);

// A file whose header fits, in memory and whole. Any thread. Throws Error.
struct SlotFile {
  std::string bytes;
  uint64_t num_tokens = 0;
  uint64_t cached = 0;
  uint64_t visible = 0;
};
SlotFile read_slot(const std::string& path, uint64_t model);

// What it holds, for a model with such caches whose keys and values are of `dtype`. On the model's worker thread.
// Throws Error.
SavedStream open_slot(const std::string& path, SlotFile file, const std::vector<CacheShape>& shapes, mx::Dtype dtype);

}  // namespace eliza::mlx
