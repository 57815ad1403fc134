// A tokenizer.json as it stands in the file, read within bounds. Private to HfTokenizer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"

namespace eliza {

// The largest vocabularies have 262,144 tokens, and twice as many merges.
inline constexpr uint64_t kMostTokenId = (uint64_t{1} << 20) - 1;
inline constexpr size_t kMostMerges = size_t{1} << 22;

struct HfTokenizerFile {
  std::string path;
  std::vector<std::pair<std::string, int32_t>> vocabulary;  // /model/vocab, in the file's order
  std::vector<std::pair<std::string, std::string>> merges;  // /model/merges, first to be applied first
  nlohmann::json document;                                  // everything else; those two are empty in it
};

// Throws Error(ELIZA_ERR_BUNDLE_INVALID) naming the file and the place.
HfTokenizerFile read_hf_tokenizer_file(const std::string& path);

}  // namespace eliza
