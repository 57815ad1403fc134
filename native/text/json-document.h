// What JSON files from outside need: a bounded read, and errors that name the file, the place and the value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "native/text/quote.h"
#include "nlohmann/json.hpp"

namespace eliza {

// Throws Error(ELIZA_ERR_BUNDLE_INVALID): `file`, made valid UTF-8, a colon and `problem`.
[[noreturn]] void fail_in_file(const std::string& file, const std::string& problem);

// The bytes of a file. Throws, naming it, where it cannot be read, or holds more than `max_bytes`; `kind` says what it
// is too large for ("a manifest").
std::string read_text_file(const std::string& path, size_t max_bytes, const std::string& kind);

// A place in a document for a message: "/files/text/0".
std::string place_name(const nlohmann::json::json_pointer& at);

// What `text`, read from `file`, means; the callback watches the parser. Throws where it is no JSON, or holds a NUL,
// which the parser would take for the end.
nlohmann::json parse_json(std::string_view text, const std::string& file,
                          const nlohmann::json::parser_callback_t& callback);

// The deepest that a document is nested: recursion over it must not run out of stack.
inline constexpr size_t kMaxJsonDepth = 64;

// A file of settings: of 16 MiB, 200,000 keys, brackets and values, 8,192 objects (the parser goes through a list's
// elements after each of them that is an object) and kMaxJsonDepth levels at most. `kind` as in read_text_file. Throws
// the same way.
nlohmann::json read_small_json(const std::string& file, const std::string& kind);

// A value of a document, and where it stands. The document must outlive it.
class JsonField {
 public:
  JsonField(const std::string& file, nlohmann::json::json_pointer at, const nlohmann::json* value)
      : file_(&file), at_(std::move(at)), value_(value) {}

  const nlohmann::json& value() const { return *value_; }
  const std::string& file() const { return *file_; }
  std::string name() const { return at_.empty() ? "the document" : place_name(at_); }

  // "FILE: PLACE is VALUE; it must be WANTED".
  [[noreturn]] void reject(const std::string& wanted) const;

  // The member under `key`; nullopt where there is none.
  std::optional<JsonField> optional(const char* key) const;

  // The same, and null counts as none.
  std::optional<JsonField> present(const char* key) const;

  JsonField required(const char* key, const std::string& wanted) const;

  // Calls visit(JsonField) on each element.
  template <typename Visit>
  void for_each_element(Visit&& visit) const {
    if (!value_->is_array()) reject("an array");
    for (size_t i = 0; i < value_->size(); ++i) visit(JsonField(*file_, at_ / i, &(*value_)[i]));
  }

  const std::string& string(const std::string& wanted) const;
  const std::string& type() const;  // of an object that says itself what it is: its member "type"
  bool boolean() const;
  uint64_t whole_number(uint64_t least, uint64_t most) const;

  // Those members, or `otherwise` where they are missing or null.
  bool boolean_or(const char* key, bool otherwise) const;
  std::string string_or(const char* key, const std::string& otherwise) const;

 private:
  std::string description() const;

  const std::string* file_;
  nlohmann::json::json_pointer at_;
  const nlohmann::json* value_;
};

}  // namespace eliza
