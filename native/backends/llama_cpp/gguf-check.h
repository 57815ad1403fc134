// Reads the header of a GGUF file in bounded code before llama.cpp parses it.
//
// A model file is hostile input: llama.cpp answers some malformed ones with a failed assertion, which ends the process.
// So everything it relies on without an error path of its own is checked here first: counts, lengths, types, tensor
// extents against the size of the file, and the ranges of the keys its loader asserts on. Independent of llama.cpp.
//
// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eliza::llama_cpp {

// What the header says that we need before, or without, a loaded model.
struct GgufHeader {
  std::string architecture;   // "llama", "gemma3"; empty where the file has no such key
  uint64_t tensor_bytes = 0;  // of all tensors in all files of a split set
  uint64_t fingerprint = 0;   // of the whole header, tensor table included, and the size of every file of the set

  // Integers and booleans below "<architecture>.", without that prefix: "block_count", "attention.head_count_kv".
  // An array has one value per layer.
  std::map<std::string, std::vector<int64_t>> integers;

  // The value of a key for a layer: a scalar counts for every layer. nullopt: no such key, or no such layer.
  std::optional<int64_t> integer(const std::string& key, size_t layer = 0) const;
};

// Checks the file at `path`, and with the first file of a split set ("…-00001-of-00003.gguf") all its others. Throws
// Error(ELIZA_ERR_BUNDLE_INVALID): the file, what is wrong with it, and that it should be downloaded again, unless it
// cannot be read.
GgufHeader check_gguf(const std::string& path);

// The size of `elements` (a multiple of the block) of a tensor type, by its number in the file format; nullopt for an
// unknown type or a partial block.
std::optional<uint64_t> gguf_row_bytes(uint32_t type, uint64_t elements);

}  // namespace eliza::llama_cpp
