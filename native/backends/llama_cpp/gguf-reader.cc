#include "native/backends/llama_cpp/gguf-reader.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "native/text/quote.h"

namespace eliza::llama_cpp {
namespace {

constexpr uint32_t kNumTypes = 13;

constexpr std::array<const char*, kNumTypes> kTypeNames = {"uint8",  "int8",    "uint16",  "int16",  "uint32",
                                                           "int32",  "float32", "boolean", "string", "array",
                                                           "uint64", "int64",   "float64"};
constexpr std::array<uint64_t, kNumTypes> kTypeSizes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

}  // namespace

const char* name(GgufType type) { return kTypeNames[static_cast<uint32_t>(type)]; }

uint64_t size_of(GgufType type) { return kTypeSizes[static_cast<uint32_t>(type)]; }

bool is_integer(GgufType type) {
  return type != GgufType::kFloat32 && type != GgufType::kFloat64 && type != GgufType::kString &&
         type != GgufType::kArray;
}

void GgufReader::string(const char* what, uint64_t max, std::string* out) {
  const uint64_t size = number<uint64_t>();
  if (size > max || size > remaining()) {
    throw Malformed(std::string(what) + " at byte " + std::to_string(position_ - 8) + " claims a length of " +
                    std::to_string(size) + " bytes, where " + std::to_string(std::min(max, remaining())) +
                    " are possible");
  }
  out->resize(size);
  bytes(out->data(), size);
}

GgufType GgufReader::type(const std::string& key) {
  const uint32_t type = number<uint32_t>();
  if (type >= kNumTypes) throw Malformed("key '" + shown(key) + "' has the unknown type " + std::to_string(type));
  return static_cast<GgufType>(type);
}

int64_t GgufReader::integer(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
    case GgufType::kBool:
      return number<uint8_t>();
    case GgufType::kInt8:
      return number<int8_t>();
    case GgufType::kUint16:
      return number<uint16_t>();
    case GgufType::kInt16:
      return number<int16_t>();
    case GgufType::kUint32:
      return number<uint32_t>();
    case GgufType::kInt32:
      return number<int32_t>();
    case GgufType::kUint64:
      // Beyond int64_t is beyond every range that is checked as well.
      return static_cast<int64_t>(std::min<uint64_t>(number<uint64_t>(), std::numeric_limits<int64_t>::max()));
    default:
      return number<int64_t>();
  }
}

double GgufReader::floating(GgufType type) {
  return type == GgufType::kFloat32 ? static_cast<double>(number<float>()) : number<double>();
}

void GgufReader::skip(uint64_t size) {
  char sink[4096];
  for (; size > sizeof sink; size -= sizeof sink) bytes(sink, sizeof sink);
  bytes(sink, size);
}

void GgufReader::bytes(void* out, size_t size) {
  if (size > remaining()) {
    throw Malformed("ends in the middle of its header, after " + std::to_string(file_.size()) + " bytes");
  }
  char* to = static_cast<char*>(out);
  const size_t total = size;
  while (size > 0) {
    if (buffer_begin_ == buffer_end_) {
      buffer_begin_ = 0;
      buffer_end_ = file_.read_at(position_ + (total - size), buffer_.data(), buffer_.size());
      if (buffer_end_ == 0) throw Malformed("became shorter while it was read");
    }
    const size_t count = std::min(size, buffer_end_ - buffer_begin_);
    std::memcpy(to, buffer_.data() + buffer_begin_, count);
    buffer_begin_ += count;
    to += count;
    size -= count;
  }
  hash_.add(out, total);
  position_ += total;
}

}  // namespace eliza::llama_cpp
