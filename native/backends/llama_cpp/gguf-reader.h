// The bytes of a GGUF file and the values in its header, read without believing any of them: what gguf-check.h's rules
// are applied to. Knows lengths and types; what a key means is not its concern.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "native/base/regular-file.h"

namespace eliza::llama_cpp {

// What is wrong with a file, without its name: check_gguf adds that.
class Malformed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class GgufType : uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};

const char* name(GgufType type);  // "uint8"
uint64_t size_of(GgufType type);  // of a value; 0 for a string or an array
bool is_integer(GgufType type);   // or a boolean

// FNV-1a.
class Hash {
 public:
  void add(const void* data, size_t size) {
    for (size_t i = 0; i < size; ++i) {
      value_ = (value_ ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3;
    }
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

// Reads forward; nothing is ever allocated, or waited for, on the word of a length that the rest of the file cannot
// hold. Throws Malformed, or Unreadable.
class GgufReader {
 public:
  explicit GgufReader(const RegularFile& file) : file_(file) {}

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return file_.size() - position_; }
  uint64_t hash() const { return hash_.value(); }

  template <typename T>
  T number() {
    T value;
    bytes(&value, sizeof value);
    return value;
  }

  // `what` names the string in the message.
  void string(const char* what, uint64_t max, std::string* out);

  // The type of a key's value, or of its elements.
  GgufType type(const std::string& key);

  // A value of an integer type, as far as an int64_t goes.
  int64_t integer(GgufType type);

  // A float or a double.
  double floating(GgufType type);

  // Reads over `size` bytes, which the caller has compared with remaining().
  void skip(uint64_t size);

 private:
  void bytes(void* out, size_t size);

  const RegularFile& file_;
  uint64_t position_ = 0;
  Hash hash_;
  std::array<char, 1 << 16> buffer_;
  size_t buffer_begin_ = 0;
  size_t buffer_end_ = 0;
};

}  // namespace eliza::llama_cpp
