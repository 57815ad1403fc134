#include "native/backends/mlx/safetensors-check.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "native/base/error.h"
#include "native/base/regular-file.h"
#include "native/base/word-hash.h"
#include "native/text/quote.h"

namespace eliza::mlx {
namespace {

using Json = nlohmann::json;

// A header has about a hundred bytes for a tensor; the largest models have some thousand tensors in a file.
constexpr uint64_t kMostHeaderBytes = uint64_t{16} << 20;
constexpr int kMostDepth = 4;
constexpr size_t kMostValues = 10'000;  // of a tensor, or of the metadata
constexpr uint64_t kSampleBytes = 4096;
constexpr size_t kMostDimensions = 8;
constexpr int64_t kMostRows = (int64_t{1} << 31) - 1;  // MLX counts in int32_t

// The bytes of an element; 0: no such type.
uint64_t element_bytes(const std::string& dtype) {
  struct Type {
    const char* name;
    uint64_t bytes;
  };
  constexpr Type kTypes[] = {{"F64", 8}, {"I64", 8}, {"U64", 8},  {"F32", 4}, {"I32", 4}, {"U32", 4}, {"F16", 2},
                             {"I16", 2}, {"U16", 2}, {"BF16", 2}, {"I8", 1},  {"U8", 1},  {"BOOL", 1}};
  for (const Type& type : kTypes) {
    if (dtype == type.name) return type.bytes;
  }
  return 0;
}

class Checker {
 public:
  Checker(const std::string& name, std::string_view header, uint64_t data_bytes)
      : name_(name), header_(header), data_bytes_(data_bytes) {}

  SafetensorsHeader run() {
    parse();
    check_overlaps();
    return std::move(result_);
  }

 private:
  struct Extent {
    uint64_t begin;
    uint64_t end;
    std::string tensor;
  };

  [[noreturn]] void fail(const std::string& problem) const {
    throw Error(ELIZA_ERR_BUNDLE_INVALID, name_ + ": " + problem + "; download it again");
  }

  [[noreturn]] void fail(const std::string& tensor, const std::string& problem) const {
    fail("the tensor '" + shown(tensor) + "' " + problem);
  }

  void parse() {
    if (header_.find('\0') != header_.npos) fail("its header holds a NUL byte");  // the parser takes it for the end
    const auto watch = [this](int depth, Json::parse_event_t event, Json& parsed) { return on(depth, event, parsed); };
    try {
      [[maybe_unused]] const Json emptied = Json::parse(header_.begin(), header_.end(), watch);
    } catch (const Json::exception&) {
      fail("its header is not valid JSON");
    }
  }

  // Reads each member as it comes, and lets the parser keep none: as JSON values they would take many times the
  // header's bytes, and the parser goes through all members after each one that is an object.
  bool on(int depth, Json::parse_event_t event, const Json& parsed) {
    if (depth > kMostDepth) fail("its header is nested deeper than a header is");
    if (depth == 0 && event != Json::parse_event_t::object_start && event != Json::parse_event_t::object_end) {
      fail("its header is no JSON object");
    }
    if (++values_ > kMostValues) fail(key_, "has more values than a tensor has");
    if (depth != 1) return true;
    switch (event) {
      case Json::parse_event_t::key:
        begin_member(parsed.get<std::string>());
        return true;
      case Json::parse_event_t::object_start:
      case Json::parse_event_t::array_start:
        return true;
      default:
        read_member(parsed);
        return false;
    }
  }

  void begin_member(std::string key) {
    key_ = std::move(key);
    values_ = 0;
    if (!keys_.insert(key_).second) fail(key_, "is in its header twice");
  }

  void read_member(const Json& value) {
    if (key_ == "__metadata__") {
      read_metadata(value);
    } else {
      read_tensor(key_, value);
    }
  }

  void read_metadata(const Json& value) {
    if (value.is_null()) return;  // so MLX writes that there is none
    if (!value.is_object()) fail("__metadata__ is no JSON object");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) fail("__metadata__ holds something else than strings");
      result_.metadata[key] = text.get<std::string>();
    }
  }

  void read_tensor(const std::string& tensor, const Json& value) {
    const auto has = [&](const char* key, Json::value_t type) {
      const auto member = value.find(key);
      return member != value.end() && member->type() == type;
    };
    if (!value.is_object() || !has("dtype", Json::value_t::string) || !has("shape", Json::value_t::array) ||
        !has("data_offsets", Json::value_t::array)) {
      fail(tensor, "lacks a dtype, a shape or data_offsets");
    }
    TensorInfo info;
    info.dtype = value["dtype"].get<std::string>();
    info.bytes = element_bytes(info.dtype);
    if (info.bytes == 0) fail(tensor, "has the dtype '" + shown(info.dtype) + "', which is not known here");
    if (value["shape"].size() > kMostDimensions) fail(tensor, "has too many dimensions");
    for (const Json& size : value["shape"]) {
      if (!size.is_number_unsigned() || size.get<uint64_t>() > static_cast<uint64_t>(kMostRows)) {
        fail(tensor, "has the dimension " + shown(size.dump(-1, ' ', false, Json::error_handler_t::replace)) +
                         ", where whole numbers up to " + std::to_string(kMostRows) + " can be");
      }
      info.shape.push_back(size.get<int64_t>());
      const uint64_t rows = size.get<uint64_t>();
      if (rows != 0 && info.bytes > data_bytes_ / rows) fail(tensor, "is larger than the file");
      info.bytes *= rows;
    }
    add_extent(tensor, info, value["data_offsets"]);
    result_.tensors[tensor] = std::move(info);
  }

  void add_extent(const std::string& tensor, const TensorInfo& info, const Json& offsets) {
    if (offsets.size() != 2 || !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned()) {
      fail(tensor, "has data_offsets that are not two whole numbers");
    }
    const uint64_t begin = offsets[0].get<uint64_t>();
    const uint64_t end = offsets[1].get<uint64_t>();
    if (begin > end || end > data_bytes_) {
      fail(tensor, "lies from " + std::to_string(begin) + " to " + std::to_string(end) + ", outside the file's " +
                       std::to_string(data_bytes_) + " bytes of data");
    }
    if (end - begin != info.bytes) {
      fail(tensor,
           "has " + std::to_string(end - begin) + " bytes, where its shape needs " + std::to_string(info.bytes));
    }
    if (begin < end) extents_.push_back({begin, end, tensor});
  }

  void check_overlaps() {
    std::sort(extents_.begin(), extents_.end(), [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
    for (size_t i = 1; i < extents_.size(); ++i) {
      if (extents_[i].begin < extents_[i - 1].end) {
        fail(extents_[i].tensor, "lies over the tensor '" + shown(extents_[i - 1].tensor) + "'");
      }
    }
  }

  const std::string& name_;
  const std::string_view header_;
  const uint64_t data_bytes_;
  std::string key_;  // of the member that the parser is in
  size_t values_ = 0;
  std::set<std::string> keys_;
  SafetensorsHeader result_;
  std::vector<Extent> extents_;
};

[[noreturn]] void fail(const std::string& name, const std::string& problem) {
  throw Error(ELIZA_ERR_BUNDLE_INVALID, name + ": " + problem);
}

SafetensorsHeader check_file(const RegularFile& file, const std::string& path) {
  const uint64_t file_bytes = file.size();
  if (file_bytes < kSafetensorsPrefix) {
    fail(path, "has " + std::to_string(file_bytes) + " bytes, too few for a safetensors file; download it again");
  }
  const auto read = [&](uint64_t offset, char* to, size_t size) {
    if (file.read_at(offset, to, size) != size) fail(path, "became shorter while it was read");
  };
  char prefix[kSafetensorsPrefix];
  read(0, prefix, sizeof prefix);
  std::string header(safetensors_header_bytes(prefix, file_bytes, path), '\0');
  read(kSafetensorsPrefix, header.data(), header.size());
  SafetensorsHeader result = check_safetensors_header(header, file_bytes, path);
  const uint64_t data_begin = kSafetensorsPrefix + header.size();
  const uint64_t sample_bytes = std::min(file_bytes - data_begin, kSampleBytes);
  for (const uint64_t begin : {data_begin, file_bytes - sample_bytes}) {
    char sample[kSampleBytes] = {};
    read(begin, sample, static_cast<size_t>(sample_bytes));
    result.fingerprint = word_hash(result.fingerprint, sample, static_cast<size_t>(sample_bytes));
  }
  return result;
}

}  // namespace

uint64_t safetensors_header_bytes(const char* prefix, uint64_t file_bytes, const std::string& name) {
  uint64_t size = 0;
  std::memcpy(&size, prefix, sizeof size);
  if (size > file_bytes - kSafetensorsPrefix) {
    fail(name, "its header claims " + std::to_string(size) + " bytes of the file's " + std::to_string(file_bytes) +
                   "; it is cut short, or no safetensors file: download it again");
  }
  if (size > kMostHeaderBytes) fail(name, "its header claims " + std::to_string(size) + " bytes, too many for one");
  return size;
}

SafetensorsHeader check_safetensors_header(std::string_view header, uint64_t file_bytes, const std::string& name) {
  const uint64_t data_begin = kSafetensorsPrefix + header.size();
  SafetensorsHeader result = Checker(name, header, file_bytes - data_begin).run();
  result.fingerprint =
      word_hash(word_hash(kWordHashSeed, header.data(), header.size()), &file_bytes, sizeof file_bytes);
  return result;
}

SafetensorsHeader check_safetensors(const std::string& path) {
  try {
    return check_file(RegularFile(path), path);
  } catch (const Unreadable& problem) {
    fail(path, problem.what());
  }
}

}  // namespace eliza::mlx
