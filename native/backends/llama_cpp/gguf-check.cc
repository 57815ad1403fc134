#include "native/backends/llama_cpp/gguf-check.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "native/backends/llama_cpp/gguf-reader.h"
#include "native/base/error.h"
#include "native/base/number-text.h"
#include "native/base/strings.h"
#include "native/text/quote.h"

namespace eliza::llama_cpp {
namespace {

// Bounds that llama.cpp compiles in (LLAMA_MAX_LAYERS, LLAMA_MAX_EXPERTS, GGML_MAX_NAME, GGML_MAX_DIMS).
constexpr int64_t kMaxLayers = 512;
constexpr int64_t kMaxExperts = 1024;
constexpr uint64_t kMaxTensorName = 63;
constexpr uint32_t kMaxDimensions = 4;

// Ours: far above any model, far below what would hurt.
constexpr uint64_t kMaxKey = 65535;
constexpr int64_t kMaxDimension = int64_t{1} << 31;
constexpr uint64_t kMaxAlignment = uint64_t{1} << 20;
constexpr uint64_t kMaxSplits = 1024;

// Elements and bytes of a block, by ggml_type; {0, 0}: a number that was never used, or is no longer.
struct Block {
  uint16_t elements;
  uint16_t bytes;
};
constexpr Block kBlocks[] = {
    {1, 4},      // 0 F32
    {1, 2},      // 1 F16
    {32, 18},    // 2 Q4_0
    {32, 20},    // 3 Q4_1
    {0, 0},      // 4 (Q4_2)
    {0, 0},      // 5 (Q4_3)
    {32, 22},    // 6 Q5_0
    {32, 24},    // 7 Q5_1
    {32, 34},    // 8 Q8_0
    {32, 36},    // 9 Q8_1
    {256, 84},   // 10 Q2_K
    {256, 110},  // 11 Q3_K
    {256, 144},  // 12 Q4_K
    {256, 176},  // 13 Q5_K
    {256, 210},  // 14 Q6_K
    {256, 292},  // 15 Q8_K
    {256, 66},   // 16 IQ2_XXS
    {256, 74},   // 17 IQ2_XS
    {256, 98},   // 18 IQ3_XXS
    {256, 50},   // 19 IQ1_S
    {32, 18},    // 20 IQ4_NL
    {256, 110},  // 21 IQ3_S
    {256, 82},   // 22 IQ2_S
    {256, 136},  // 23 IQ4_XS
    {1, 1},      // 24 I8
    {1, 2},      // 25 I16
    {1, 4},      // 26 I32
    {1, 8},      // 27 I64
    {1, 8},      // 28 F64
    {256, 56},   // 29 IQ1_M
    {1, 2},      // 30 BF16
    {0, 0},      // 31 (Q4_0_4_4)
    {0, 0},      // 32 (Q4_0_4_8)
    {0, 0},      // 33 (Q4_0_8_8)
    {256, 54},   // 34 TQ1_0
    {256, 66},   // 35 TQ2_0
    {0, 0},      // 36 (IQ4_NL_4_4)
    {0, 0},      // 37 (IQ4_NL_4_8)
    {0, 0},      // 38 (IQ4_NL_8_8)
    {32, 17},    // 39 MXFP4
    {64, 36},    // 40 NVFP4
    {128, 18},   // 41 Q1_0
    {64, 18},    // 42 Q2_0
};

struct Metadata {
  std::string architecture;
  std::string rope_scaling;
  uint64_t alignment = 32;
  int64_t split_number = 0;
  int64_t split_count = 0;
  std::map<std::string, std::vector<int64_t>> integers;  // full keys; arrays of at most kMaxLayers elements
};

// llama.cpp asserts that no token occurs twice (and gives empty ones distinct names).
void check_tokens(GgufReader& reader, uint64_t count) {
  std::vector<uint64_t> hashes;
  hashes.reserve(count);
  std::string token;
  for (uint64_t i = 0; i < count; ++i) {
    reader.string("a token of the vocabulary", reader.remaining(), &token);
    if (token.empty()) continue;
    Hash hash;
    hash.add(token.data(), token.size());
    hashes.push_back(hash.value());
  }
  std::sort(hashes.begin(), hashes.end());
  if (std::adjacent_find(hashes.begin(), hashes.end()) != hashes.end()) {
    throw Malformed("has a vocabulary in which a token occurs twice");
  }
}

void read_array(GgufReader& reader, const std::string& key, Metadata* metadata) {
  const GgufType type = reader.type(key);
  if (type == GgufType::kArray) throw Malformed("key '" + shown(key) + "' is an array of arrays");
  const uint64_t count = reader.number<uint64_t>();
  const uint64_t least = type == GgufType::kString ? sizeof(uint64_t) : size_of(type);
  if (count > reader.remaining() / least) {
    throw Malformed("key '" + shown(key) + "' claims " + std::to_string(count) +
                    " elements, more than the rest of the file");
  }
  if (key == "tokenizer.ggml.tokens") {
    if (type != GgufType::kString || count == 0 || count > std::numeric_limits<int32_t>::max()) {
      throw Malformed("has no usable vocabulary: tokenizer.ggml.tokens has " + std::to_string(count) +
                      " elements of type " + name(type));
    }
    check_tokens(reader, count);
  } else if (type == GgufType::kString) {
    std::string element;
    for (uint64_t i = 0; i < count; ++i) reader.string("an element of an array", reader.remaining(), &element);
  } else if (is_integer(type) && count <= kMaxLayers) {
    std::vector<int64_t>& values = metadata->integers[key];
    for (uint64_t i = 0; i < count; ++i) values.push_back(reader.integer(type));
  } else if (is_integer(type)) {
    reader.skip(count * least);
  } else {
    // Scores, by which a tokenizer sorts.
    for (uint64_t i = 0; i < count; ++i) {
      if (std::isnan(reader.floating(type))) throw Malformed("key '" + shown(key) + "' holds what is not a number");
    }
  }
}

void read_string_value(GgufReader& reader, const std::string& key, Metadata* metadata) {
  std::string value;
  reader.string("a value", reader.remaining(), &value);
  if (key == "general.architecture") {
    metadata->architecture = std::move(value);
  } else if (ends_with(key, ".rope.scaling.type")) {
    metadata->rope_scaling = std::move(value);
  }
}

// What is not finite makes every logit NaN; and of an epsilon, which normalisation adds below a square root, ggml
// asserts while computing that it is not negative.
void check_float(const std::string& key, double value) {
  // llama.cpp's own way of saying that there is no bound, in every file that it writes.
  if (ends_with(key, ".kda.gate_lower_bound") && std::isinf(value) && value < 0) return;
  if (!std::isfinite(value)) throw Malformed("has " + shown(key) + " = " + number_text(value) + ", not a number");
  if (ends_with(key, "epsilon") && !(value >= 0 && value <= 1)) {
    throw Malformed("has " + shown(key) + " = " + number_text(value) + ", outside of 0 to 1");
  }
}

// The types of the keys that are read without an error path.
void check_key_type(const std::string& key, GgufType type) {
  const auto require = [&](GgufType wanted) {
    if (type != wanted)
      throw Malformed("key '" + shown(key) + "' is of type " + name(type) + " instead of " + name(wanted));
  };
  if (key == "general.alignment") require(GgufType::kUint32);
  if (key == "general.architecture") require(GgufType::kString);
  if (key == "split.count" || key == "split.no") require(GgufType::kUint16);
  if (key == "tokenizer.ggml.model" || key == "tokenizer.ggml.pre") require(GgufType::kString);
  if (key == "tokenizer.ggml.tokens" || key == "tokenizer.ggml.merges") require(GgufType::kArray);
}

Metadata read_metadata(GgufReader& reader, uint64_t count) {
  Metadata metadata;
  std::string key;
  for (uint64_t i = 0; i < count; ++i) {
    reader.string("a key", kMaxKey, &key);
    if (key.empty()) throw Malformed("has a key without a name");
    const GgufType type = reader.type(key);
    check_key_type(key, type);
    if (type == GgufType::kArray) {
      read_array(reader, key, &metadata);
    } else if (type == GgufType::kString) {
      read_string_value(reader, key, &metadata);
    } else if (is_integer(type)) {
      metadata.integers[key] = {reader.integer(type)};
    } else {
      check_float(key, reader.floating(type));
    }
  }
  const auto scalar = [&](const char* name, int64_t fallback) {
    const auto found = metadata.integers.find(name);
    return found == metadata.integers.end() || found->second.size() != 1 ? fallback : found->second[0];
  };
  metadata.alignment = static_cast<uint64_t>(scalar("general.alignment", 32));
  metadata.split_number = scalar("split.no", 0);
  metadata.split_count = scalar("split.count", 0);
  if (metadata.alignment == 0 || metadata.alignment > kMaxAlignment ||
      (metadata.alignment & (metadata.alignment - 1)) != 0) {
    throw Malformed("has general.alignment " + std::to_string(metadata.alignment) + ", not a power of two up to " +
                    std::to_string(kMaxAlignment));
  }
  return metadata;
}

// Reads the tensor table, and returns the bytes of all tensors.
uint64_t check_tensors(GgufReader& reader, uint64_t count, uint64_t alignment, uint64_t file_size) {
  uint64_t end_of_data = 0;  // relative to the start of the data section
  uint64_t total = 0;
  std::string name;
  for (uint64_t i = 0; i < count; ++i) {
    reader.string("the name of a tensor", kMaxTensorName, &name);
    const uint32_t dimensions = reader.number<uint32_t>();
    if (dimensions == 0 || dimensions > kMaxDimensions) {
      throw Malformed("has a tensor '" + shown(name) + "' of " + std::to_string(dimensions) +
                      " dimensions, where 1 to " + std::to_string(kMaxDimensions) + " are possible");
    }
    uint64_t row = 1;
    uint64_t rows = 1;
    for (uint32_t d = 0; d < dimensions; ++d) {
      const int64_t extent = reader.number<int64_t>();
      if (extent < 1 || extent > kMaxDimension || (d > 0 && rows > static_cast<uint64_t>(kMaxDimension))) {
        throw Malformed("has a tensor '" + shown(name) + "' with an extent of " + std::to_string(extent));
      }
      (d == 0 ? row : rows) *= static_cast<uint64_t>(extent);
    }
    const uint32_t type = reader.number<uint32_t>();
    const std::optional<uint64_t> row_bytes = gguf_row_bytes(type, row);
    if (!row_bytes) {
      throw Malformed("has a tensor '" + shown(name) + "' of type " + std::to_string(type) + " with rows of " +
                      std::to_string(row) + ": no such type, or a row that is no multiple of its block");
    }
    const uint64_t offset = reader.number<uint64_t>();
    if (offset % alignment != 0) {
      throw Malformed("has a tensor '" + shown(name) + "' at offset " + std::to_string(offset) +
                      ", not a multiple of " + std::to_string(alignment));
    }
    // Divisions, since the products may overflow.
    if (rows > file_size / *row_bytes || offset > file_size - *row_bytes * rows) {
      throw Malformed("is too short: its tensor '" + shown(name) + "' would end beyond the file's " +
                      std::to_string(file_size) + " bytes; the download is probably incomplete");
    }
    total += *row_bytes * rows;
    end_of_data = std::max(end_of_data, offset + *row_bytes * rows);
  }
  const uint64_t start = (reader.position() + alignment - 1) / alignment * alignment;
  if (count > 0 && (start > file_size || end_of_data > file_size - start)) {
    throw Malformed("is too short: it has " + std::to_string(file_size) + " bytes and its tensors end at byte " +
                    std::to_string(start + end_of_data) + "; the download is probably incomplete");
  }
  return total;
}

// The ranges of hyperparameters on which llama.cpp's loader asserts or divides.
void check_hyperparameters(const GgufHeader& header, const std::string& rope_scaling) {
  const auto range = [&](const char* key, int64_t least, int64_t most) {
    const auto found = header.integers.find(key);
    if (found == header.integers.end()) return;  // llama.cpp reports a missing key itself
    for (const int64_t value : found->second) {
      if (value < least || value > most) {
        throw Malformed("has " + shown(header.architecture) + "." + key + " = " + std::to_string(value) +
                        ", outside of " + std::to_string(least) + " to " + std::to_string(most));
      }
    }
  };
  range("block_count", 1, kMaxLayers);
  range("context_length", 1, std::numeric_limits<int32_t>::max());
  range("embedding_length", 1, 1 << 20);
  range("embedding_length_out", 0, 1 << 20);
  range("vocab_size", 1, std::numeric_limits<int32_t>::max());
  range("feed_forward_length", 0, 1 << 24);
  range("attention.head_count", 0, 1 << 16);
  // Several heads share one of these, never the other way round: more would only make the cache larger. A model without
  // attention may say that it has no heads.
  int64_t most_heads = 0;
  const auto heads_of_layers = header.integers.find("attention.head_count");
  if (heads_of_layers != header.integers.end()) {
    for (const int64_t count : heads_of_layers->second) most_heads = std::max(most_heads, count);
  }
  range("attention.head_count_kv", 0, most_heads > 0 ? most_heads : 1 << 16);
  range("attention.sliding_window", 0, std::numeric_limits<int32_t>::max());
  for (const char* key :
       {"attention.key_length", "attention.value_length", "attention.key_length_swa", "attention.value_length_swa"}) {
    range(key, 1, 1 << 16);
  }
  range("rope.dimension_count", 0, 1 << 16);  // 0: nothing is rotated
  range("rope.dimension_count_swa", 0, 1 << 16);
  if (header.architecture.find("rwkv") != std::string::npos) range("wkv.head_size", 1, 1 << 16);
  range("hyper_connection.sinkhorn_iterations", 0, 1 << 10);  // each is part of every graph
  // A rotation turns pairs of a head's values.
  const int64_t heads = header.integer("attention.head_count").value_or(0);
  const int64_t width = header.integer("embedding_length").value_or(0);
  for (const char* suffix : {"", "_swa"}) {
    const std::string dimensions_key = std::string("rope.dimension_count") + suffix;
    const int64_t head = header.integer(std::string("attention.key_length") + suffix)
                             .value_or(header.integer("attention.key_length").value_or(heads > 0 ? width / heads : 0));
    const int64_t dimensions = header.integer(dimensions_key).value_or(head);
    if (dimensions % 2 != 0 || (head > 0 && dimensions > head)) {
      throw Malformed("has " + shown(header.architecture) + "." + dimensions_key + " = " + std::to_string(dimensions) +
                      " for heads of " + std::to_string(head) + " values: it must be even, and no more than these");
    }
  }
  const int64_t layers = header.integer("block_count").value_or(kMaxLayers);
  range("nextn_predict_layers", 0, layers);
  range("attention.shared_kv_layers", 0, layers);
  const int64_t experts = header.integer("expert_count").value_or(0);
  range("expert_count", 0, kMaxExperts);
  range("expert_used_count", 0, experts);
  range("expert_group_count", 0, std::max<int64_t>(experts - 1, 0));
  if (!rope_scaling.empty() && rope_scaling != "none" && rope_scaling != "linear" && rope_scaling != "yarn" &&
      rope_scaling != "longrope") {
    throw Malformed("has the unknown rope scaling '" + shown(rope_scaling) + "'");
  }
}

struct CheckedFile {
  GgufHeader header;
  int64_t split_number;
  int64_t split_count;
};

CheckedFile check_file(const std::string& path) {
  const RegularFile file(path);
  if (file.size() == 0) throw Malformed("is empty");
  GgufReader reader(file);
  if (file.size() < 4 || reader.number<uint32_t>() != 0x46554747) {  // "GGUF", little-endian
    throw Malformed("is no GGUF file: it does not begin with 'GGUF'");
  }
  const uint32_t version = reader.number<uint32_t>();
  if (version != 0 && (version & 0xffff) == 0) throw Malformed("is a big-endian GGUF file, which cannot be used here");
  if (version != 2 && version != 3) {
    throw Malformed("is GGUF version " + std::to_string(version) + ", where 2 and 3 are known");
  }
  const uint64_t num_tensors = reader.number<uint64_t>();
  const uint64_t num_keys = reader.number<uint64_t>();
  // The least a tensor and a key take: empty names, one dimension, one byte of value.
  if (num_tensors > reader.remaining() / 32 || num_keys > reader.remaining() / 13) {
    throw Malformed("claims " + std::to_string(num_tensors) + " tensors and " + std::to_string(num_keys) +
                    " keys, more than its " + std::to_string(file.size()) + " bytes can hold");
  }
  const Metadata metadata = read_metadata(reader, num_keys);

  CheckedFile checked{{}, metadata.split_number, metadata.split_count};
  GgufHeader& header = checked.header;
  header.architecture = metadata.architecture;
  header.tensor_bytes = check_tensors(reader, num_tensors, metadata.alignment, file.size());
  const std::string prefix = metadata.architecture + ".";
  for (const auto& [key, values] : metadata.integers) {
    if (key.compare(0, prefix.size(), prefix) == 0) header.integers[key.substr(prefix.size())] = values;
  }
  check_hyperparameters(header, metadata.rope_scaling);

  Hash fingerprint;
  const uint64_t header_hash = reader.hash();
  const uint64_t size = file.size();
  fingerprint.add(&header_hash, sizeof header_hash);
  fingerprint.add(&size, sizeof size);
  header.fingerprint = fingerprint.value();
  return checked;
}

CheckedFile check_file_or_throw(const std::string& path) {
  try {
    return check_file(path);
  } catch (const Unreadable& problem) {
    throw Error(ELIZA_ERR_BUNDLE_INVALID, "the model file " + path + " " + problem.what());
  } catch (const Malformed& malformed) {
    throw Error(ELIZA_ERR_BUNDLE_INVALID,
                "the model file " + path + " " + malformed.what() +
                    ". Download the model again; its sha256 tells whether it arrived as it was published");
  }
}

std::string five_digits(uint64_t number) {
  const std::string digits = std::to_string(number);
  return std::string(5 - std::min<size_t>(5, digits.size()), '0') + digits;
}

}  // namespace

std::optional<int64_t> GgufHeader::integer(const std::string& key, size_t layer) const {
  const auto found = integers.find(key);
  if (found == integers.end()) return std::nullopt;
  if (found->second.size() == 1) return found->second[0];
  if (layer >= found->second.size()) return std::nullopt;
  return found->second[layer];
}

std::optional<uint64_t> gguf_row_bytes(uint32_t type, uint64_t elements) {
  if (type >= std::size(kBlocks) || kBlocks[type].elements == 0) return std::nullopt;
  const Block block = kBlocks[type];
  if (elements % block.elements != 0) return std::nullopt;
  return elements / block.elements * block.bytes;
}

GgufHeader check_gguf(const std::string& path) {
  const CheckedFile first = check_file_or_throw(path);
  GgufHeader header = first.header;
  if (first.split_count <= 1) return header;

  const uint64_t count = static_cast<uint64_t>(first.split_count);
  const std::string suffix = "-00001-of-" + five_digits(count) + ".gguf";
  if (first.split_number != 0 || count > kMaxSplits || !ends_with(path, suffix)) {
    throw Error(ELIZA_ERR_BUNDLE_INVALID, "the model file " + path + " says that it is part " +
                                              std::to_string(first.split_number + 1) + " of " + std::to_string(count) +
                                              ": open the first part, with a name that ends in '" + suffix +
                                              "', beside all the others");
  }
  Hash fingerprint;
  fingerprint.add(&header.fingerprint, sizeof header.fingerprint);
  for (uint64_t part = 2; part <= count; ++part) {
    const CheckedFile other = check_file_or_throw(path.substr(0, path.size() - suffix.size()) + "-" +
                                                  five_digits(part) + "-of-" + five_digits(count) + ".gguf");
    header.tensor_bytes += other.header.tensor_bytes;
    fingerprint.add(&other.header.fingerprint, sizeof other.header.fingerprint);
  }
  header.fingerprint = fingerprint.value();
  return header;
}

}  // namespace eliza::llama_cpp
