// A saved context as a file: the tokens, and llama.cpp's state for them.
//
//   header    magic, format version, checksum, and what has to fit: model, runtime, KV types
//   tokens    int32 each
//   state     what llama_state_seq_get_data wrote
//
// Little-endian. Everything is checked before anything is used: a truncated, foreign, newer or altered file is an
// error.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace eliza::llama_cpp {

// What a state can only be restored into.
struct SlotIdentity {
  uint64_t model = 0;    // GgufHeader::fingerprint
  uint64_t runtime = 0;  // of the llama.cpp that wrote it: its state has no format across versions
  uint32_t type_k = 0;
  uint32_t type_v = 0;
};

struct SavedContext {
  std::vector<int32_t> tokens;
  uint64_t decoded = 0;  // the first so many are in `state`
  uint64_t visible = 0;  // the first so many were delivered to the caller
  std::vector<uint8_t> state;
};

// Writes `path` atomically: a temporary file beside it, fsync, rename. Throws Error; `path` is then as it was.
void write_slot_file(const std::string& path, const SlotIdentity& identity, const SavedContext& context);

// Throws Error that says what does not fit.
SavedContext read_slot_file(const std::string& path, const SlotIdentity& identity);

}  // namespace eliza::llama_cpp
