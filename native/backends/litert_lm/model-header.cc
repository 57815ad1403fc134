#include "native/backends/litert_lm/model-header.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "native/base/error.h"
#include "native/base/regular-file.h"
#include "native/base/strings.h"

namespace eliza::litert_lm {
namespace {

constexpr std::string_view kMagic = "LITERTLM";
constexpr uint32_t kMajorVersion = 1;
constexpr size_t kFixedSize = 32;  // up to the flatbuffer
constexpr size_t kMostHeader = 64 << 10;
// Of a list; models have some ten. Entries may all lead to one place, so the header's size alone bounds no work.
constexpr uint32_t kMostEntries = 256;

// Of AnySectionDataType and VData.
constexpr uint8_t kTfLiteModel = 3;
constexpr uint8_t kStringValue = 9;

[[noreturn]] void fail(const std::string& path, const std::string& problem,
                       const std::string& advice = "Download the model again") {
  throw Error(ELIZA_ERR_BUNDLE_INVALID, "the model file " + path + " " + problem + ". " + advice);
}

struct Damaged {};  // a place outside the buffer

// A flatbuffer of somebody else's: every read is checked against its end.
class Buffer {
 public:
  explicit Buffer(std::string bytes) : bytes_(std::move(bytes)) {}

  template <typename T>
  T read(size_t at) const {
    T value;
    if (at > bytes_.size() || bytes_.size() - at < sizeof value) throw Damaged();
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return value;
  }

  // The place that the 32-bit offset at `at` leads to.
  size_t follow(size_t at) const { return at + read<uint32_t>(at); }

  std::string_view text(size_t at) const {
    const auto size = read<uint32_t>(at);
    if (bytes_.size() - at - sizeof size < size) throw Damaged();
    return std::string_view(bytes_).substr(at + sizeof size, size);
  }

 private:
  std::string bytes_;
};

// A table of it.
class Table {
 public:
  Table(const Buffer& buffer, size_t at) : buffer_(&buffer), at_(at) {}
  static Table root(const Buffer& buffer) { return {buffer, buffer.follow(0)}; }

  template <typename T>
  T scalar(size_t field) const {
    const auto at = place(field);
    return at ? buffer_->read<T>(*at) : T{};
  }

  std::optional<Table> table(size_t field) const {
    const auto at = place(field);
    if (!at) return std::nullopt;
    return Table(*buffer_, buffer_->follow(*at));
  }

  std::string_view text(size_t field) const {
    const auto at = place(field);
    return at ? buffer_->text(buffer_->follow(*at)) : std::string_view();
  }

  std::vector<Table> tables(size_t field) const {
    std::vector<Table> result;
    const auto at = place(field);
    if (!at) return result;
    const size_t vector = buffer_->follow(*at);
    const auto count = buffer_->read<uint32_t>(vector);
    if (count > kMostEntries) throw Damaged();
    for (uint32_t i = 0; i < count; ++i) {
      result.emplace_back(*buffer_, buffer_->follow(vector + sizeof(uint32_t) * (size_t{i} + 1)));
    }
    return result;
  }

 private:
  // Where a field is; nullopt where it is left out.
  std::optional<size_t> place(size_t field) const {
    const auto back = static_cast<int64_t>(buffer_->read<int32_t>(at_));
    const int64_t vtable = static_cast<int64_t>(at_) - back;
    if (vtable < 0) throw Damaged();
    const size_t entry = sizeof(uint16_t) * (field + 2);
    if (entry + sizeof(uint16_t) > buffer_->read<uint16_t>(static_cast<size_t>(vtable))) return std::nullopt;
    const auto offset = buffer_->read<uint16_t>(static_cast<size_t>(vtable) + entry);
    if (offset == 0) return std::nullopt;
    return at_ + offset;
  }

  const Buffer* buffer_;
  size_t at_;
};

// The string under `key` of a list of KeyValuePair; "" for none.
std::string string_item(const std::vector<Table>& items, std::string_view key) {
  for (const Table& item : items) {
    if (item.text(0) != key || item.scalar<uint8_t>(1) != kStringValue) continue;
    if (const auto value = item.table(2)) return std::string(value->text(0));
  }
  return {};
}

std::vector<std::string> split_list(const std::string& list) {
  std::vector<std::string> parts(1);
  for (const char c : list) {
    if (c == ',') {
      parts.emplace_back();
    } else if (c != ' ') {
      parts.back() += ascii_lower(c);
    }
  }
  parts.erase(std::remove(parts.begin(), parts.end(), std::string()), parts.end());
  return parts;
}

// The flatbuffer. Throws Error where the file's first bytes are not those of a model.
Buffer read_buffer(const RegularFile& file, const std::string& path) {
  char fixed[kFixedSize] = {};
  const size_t size = file.read_at(0, fixed, sizeof fixed);
  if (size == 0) fail(path, "is empty");
  if (std::string_view(fixed, std::min(size, kMagic.size())) != kMagic) {
    fail(path, "is not a LiteRT-LM model: it does not begin with " + std::string(kMagic));
  }
  if (size < kFixedSize) fail(path, "is truncated: it ends in its header");
  uint32_t major;
  uint64_t header_end;
  std::memcpy(&major, fixed + kMagic.size(), sizeof major);
  std::memcpy(&header_end, fixed + 24, sizeof header_end);
  if (major != kMajorVersion) {
    fail(path,
         "is of format version " + std::to_string(major) + ", where " + std::to_string(kMajorVersion) + " is known",
         "Take a model of that version");
  }
  if (header_end <= kFixedSize || header_end > kMostHeader) {
    fail(path, "claims a header that ends at byte " + std::to_string(header_end) + ", where at most " +
                   std::to_string(kMostHeader) + " are read");
  }
  std::string bytes(static_cast<size_t>(header_end) - kFixedSize, '\0');
  if (file.read_at(kFixedSize, bytes.data(), bytes.size()) != bytes.size()) {
    fail(path, "is truncated: it ends in its header");
  }
  return Buffer(std::move(bytes));
}

void read_section(const Table& section, ModelHeader* header, bool* has_model) {
  if (section.scalar<uint8_t>(3) != kTfLiteModel) return;
  const std::vector<Table> items = section.tables(0);
  const std::string type = string_item(items, "model_type");
  if (!type.empty() && type != "tf_lite_prefill_decode") return;
  *has_model = true;
  header->backends = split_list(string_item(items, "backend_constraint"));
  for (const char* key : {"soc_model", "soc_name"}) {
    if (header->soc.empty()) header->soc = string_item(items, key);
  }
}

ModelHeader read_header(const RegularFile& file, const std::string& path) {
  const Buffer buffer = read_buffer(file, path);
  ModelHeader header;
  bool has_model = false;
  try {
    const auto sections = Table::root(buffer).table(1);
    for (const Table& section : sections ? sections->tables(0) : std::vector<Table>()) {
      const auto begin = section.scalar<uint64_t>(1);
      const auto end = section.scalar<uint64_t>(2);
      if (begin > end) fail(path, "has a section that ends before it begins");
      if (end > file.size()) {
        fail(path, "is truncated: it has " + std::to_string(file.size()) +
                       " bytes, and its header a section up to byte " + std::to_string(end));
      }
      read_section(section, &header, &has_model);
    }
  } catch (const Damaged&) {
    fail(path, "has a damaged header");
  }
  if (!has_model) fail(path, "holds no model that generates text", "Take one that does");
  // What the runtime takes a model without a constraint for.
  if (header.backends.empty()) header.backends = {"cpu", "gpu"};
  return header;
}

}  // namespace

bool ModelHeader::runs_on(const std::string& backend) const {
  return std::find(backends.begin(), backends.end(), backend) != backends.end();
}

ModelHeader read_model_header(const std::string& path) {
  try {
    return read_header(RegularFile(path), path);
  } catch (const Unreadable& problem) {
    throw Error(ELIZA_ERR_BUNDLE_INVALID, "the model file " + path + " " + problem.what());
  }
}

}  // namespace eliza::litert_lm
