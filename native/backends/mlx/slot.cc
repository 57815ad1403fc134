#include "native/backends/mlx/slot.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>
#include <unordered_map>

#include "native/backends/mlx/safetensors-check.h"
#include "native/base/error.h"
#include "native/base/slot-bytes.h"
#include "native/base/word-hash.h"
#include "native/text/quote.h"

namespace eliza::mlx {
namespace {

constexpr char kFormat[] = "1";
constexpr char kFormatKey[] = "eliza_slot";
constexpr char kChecksumKey[] = "checksum";
constexpr char kNoChecksum[] = "0000000000000000";
constexpr size_t kDigits = sizeof kNoChecksum - 1;

std::string digits(uint64_t value) {
  char text[kDigits + 1];
  std::snprintf(text, sizeof text, "%016" PRIx64, value);
  return text;
}

// A file in memory, for MLX to write to.
class MemoryWriter final : public mx::io::Writer {
 public:
  bool is_open() const override { return true; }
  bool good() const override { return true; }
  size_t tell() override { return at_; }
  void seek(int64_t offset, std::ios_base::seekdir way) override {
    const size_t from = way == std::ios_base::beg ? 0 : way == std::ios_base::cur ? at_ : bytes.size();
    at_ = static_cast<size_t>(static_cast<int64_t>(from) + offset);
  }
  void write(const char* data, size_t size) override {
    if (at_ + size > bytes.size()) bytes.resize(at_ + size);
    std::memcpy(bytes.data() + at_, data, size);
    at_ += size;
  }
  std::string label() const override { return "a slot"; }

  std::string bytes;

 private:
  size_t at_ = 0;
};

// And to read from.
class MemoryReader final : public mx::io::Reader {
 public:
  explicit MemoryReader(std::string bytes) : bytes_(std::move(bytes)) {}
  bool is_open() const override { return true; }
  bool good() const override { return at_ <= bytes_.size(); }
  size_t tell() override { return at_; }
  void seek(int64_t offset, std::ios_base::seekdir way) override {
    const size_t from = way == std::ios_base::beg ? 0 : way == std::ios_base::cur ? at_ : bytes_.size();
    at_ = static_cast<size_t>(static_cast<int64_t>(from) + offset);
  }
  void read(char* data, size_t size) override {
    read(data, size, at_);
    at_ += size;
  }
  void read(char* data, size_t size, size_t offset) override {
    if (offset > bytes_.size() || size > bytes_.size() - offset) throw std::runtime_error("the slot ends too soon");
    std::memcpy(data, bytes_.data() + offset, size);
  }
  std::string label() const override { return "a slot"; }

 private:
  const std::string bytes_;
  size_t at_ = 0;
};

// Where the digits of the checksum are in a file; npos where there are none.
size_t find_checksum(const std::string& bytes, uint64_t header_bytes) {
  const std::string key = std::string("\"") + kChecksumKey + "\":\"";
  const size_t at = bytes.find(key);
  const size_t end = kSafetensorsPrefix + header_bytes;
  if (at == std::string::npos || at + key.size() + kDigits > end) return std::string::npos;
  return at + key.size();
}

std::string layer_name(size_t layer, const char* what) { return "layer." + std::to_string(layer) + "." + what; }

uint64_t header_bytes_of(const std::string& bytes) {
  uint64_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof size);
  return size;
}

// A count of the metadata.
uint64_t count_of(const SafetensorsHeader& header, const char* key, const std::string& path) {
  const auto entry = header.metadata.find(key);
  uint64_t value = 0;
  char rest = 0;
  if (entry == header.metadata.end() || std::sscanf(entry->second.c_str(), "%" SCNu64 "%c", &value, &rest) != 1) {
    refuse_slot(path, "contradicts itself");
  }
  return value;
}

SafetensorsHeader read_header(SlotReader& reader, const std::string& path, std::string* bytes) {
  if (reader.size() < kSafetensorsPrefix) {
    refuse_slot(path, "has " + std::to_string(reader.size()) + " bytes, too few for a slot file");
  }
  bytes->resize(kSafetensorsPrefix);
  if (!reader.read(bytes->data(), kSafetensorsPrefix)) refuse_slot(path, "became shorter while it was read");
  try {
    const uint64_t size = safetensors_header_bytes(bytes->data(), reader.size(), path);
    bytes->resize(kSafetensorsPrefix + size);
    if (!reader.read(bytes->data() + kSafetensorsPrefix, size)) refuse_slot(path, "became shorter while it was read");
    return check_safetensors_header(std::string_view(*bytes).substr(kSafetensorsPrefix), reader.size(), path);
  } catch (const Error& error) {
    if (error.status() == ELIZA_ERR_INVALID_ARG) throw;
    refuse_slot(path, std::string("is no slot file, or is truncated: ") + error.what());
  }
}

}  // namespace

std::string slot_bytes(uint64_t model, const SavedStream& stream) {
  std::unordered_map<std::string, mx::array> arrays;
  if (!stream.tokens.empty()) {
    arrays.insert_or_assign("tokens", mx::array(stream.tokens.begin(), {static_cast<int>(stream.tokens.size())}));
  }
  for (size_t layer = 0; layer < stream.caches.size(); ++layer) {
    const auto rows = stream.caches[layer].ordered();
    if (!rows) continue;
    arrays.insert_or_assign(layer_name(layer, "keys"), mx::contiguous(rows->first));
    arrays.insert_or_assign(layer_name(layer, "values"), mx::contiguous(rows->second));
  }
  const auto writer = std::make_shared<MemoryWriter>();
  mx::save_safetensors(writer, arrays,
                       {{kFormatKey, kFormat},
                        {kChecksumKey, kNoChecksum},
                        {"model", digits(model)},
                        {"tokens", std::to_string(stream.tokens.size())},
                        {"cached", std::to_string(stream.cached)},
                        {"visible", std::to_string(stream.visible)}});
  std::string& bytes = writer->bytes;
  const size_t checksum = find_checksum(bytes, header_bytes_of(bytes));
  bytes.replace(checksum, kDigits, digits(word_hash(kWordHashSeed, bytes.data(), bytes.size())));
  return std::move(bytes);
}

SlotFile read_slot(const std::string& path, uint64_t model) {
  SlotReader reader(path);
  SlotFile file;
  const SafetensorsHeader header = read_header(reader, path, &file.bytes);
  const auto format = header.metadata.find(kFormatKey);
  if (format == header.metadata.end()) refuse_slot(path, "is no slot file");
  if (format->second != kFormat) {
    refuse_slot(path, "has format version " + shown(format->second, 20) + ", where this library reads version " +
                          kFormat + ": save the slot again");
  }
  const auto saved_model = header.metadata.find("model");
  if (saved_model == header.metadata.end() || saved_model->second != digits(model)) {
    refuse_slot(path, "was saved from another model");
  }
  const size_t header_end = file.bytes.size();
  file.bytes.resize(reader.size());
  if (!reader.read(file.bytes.data() + header_end, file.bytes.size() - header_end)) {
    refuse_slot(path, "became shorter while it was read");
  }
  const size_t checksum = find_checksum(file.bytes, header_end - kSafetensorsPrefix);
  std::string bare = checksum == std::string::npos ? "" : file.bytes.substr(checksum, kDigits);
  if (checksum != std::string::npos) file.bytes.replace(checksum, kDigits, kNoChecksum);
  if (bare.empty() || bare != digits(word_hash(kWordHashSeed, file.bytes.data(), file.bytes.size()))) {
    refuse_slot(path, "is damaged: its checksum does not fit");
  }
  file.num_tokens = count_of(header, "tokens", path);
  file.cached = count_of(header, "cached", path);
  file.visible = count_of(header, "visible", path);
  constexpr uint64_t kMostTokens = uint64_t{1} << 30;
  if (file.num_tokens > kMostTokens || file.cached > file.num_tokens || file.visible > file.num_tokens) {
    refuse_slot(path, "contradicts itself");
  }
  return file;
}

SavedStream open_slot(const std::string& path, SlotFile file, const std::vector<CacheShape>& shapes, mx::Dtype dtype) {
  SavedStream stream;
  stream.cached = file.cached;
  stream.visible = file.visible;
  std::unordered_map<std::string, mx::array> arrays =
      mx::load_safetensors(std::make_shared<MemoryReader>(std::move(file.bytes))).first;
  const auto take = [&](const std::string& name, const mx::Shape& shape, mx::Dtype type) {
    const auto entry = arrays.find(name);
    if (entry == arrays.end() || entry->second.shape() != shape || entry->second.dtype() != type) {
      refuse_slot(path, "contradicts itself: " + name + " is missing, or of another shape or type");
    }
    mx::array array = entry->second;
    array.eval();
    return array;
  };
  if (file.num_tokens > 0) {
    const mx::array tokens = take("tokens", {static_cast<int>(file.num_tokens)}, mx::int32);
    stream.tokens.assign(tokens.data<int32_t>(), tokens.data<int32_t>() + file.num_tokens);
  }
  const int cached = static_cast<int>(file.cached);
  for (size_t layer = 0; layer < shapes.size(); ++layer) {
    stream.caches.emplace_back(shapes[layer]);
    if (cached == 0) continue;
    // A sliding layer has what its window sees from the next token, or more.
    const auto keys = arrays.find(layer_name(layer, "keys"));
    const int window = static_cast<int>(shapes[layer].window);
    const int rows = keys == arrays.end() || keys->second.ndim() != 4 ? 0 : keys->second.shape(2);
    const int least = window == 0 ? cached : std::min(cached, std::max(window - 1, 1));
    if (rows < least || rows > cached) refuse_slot(path, "contradicts itself: layer " + std::to_string(layer));
    const mx::Shape shape{1, static_cast<int>(shapes[layer].heads), rows, static_cast<int>(shapes[layer].head)};
    stream.caches.back().restore(take(layer_name(layer, "keys"), shape, dtype),
                                 take(layer_name(layer, "values"), shape, dtype), cached);
  }
  return stream;
}

}  // namespace eliza::mlx
