#include "native/text/json-document.h"

#include <algorithm>

#include "native/base/error.h"
#include "native/base/regular-file.h"
#include "native/text/quote.h"

namespace eliza {
namespace {

// A parser's complaint without its prefix "[json.exception.NAME.ID] "; it may quote megabytes of what was read.
std::string json_reason(const std::exception& error) {
  const std::string_view what = error.what();
  const size_t end_of_name = what.find("] ");
  return "not valid JSON: " + in_quotes(end_of_name == what.npos ? what : what.substr(end_of_name + 2));
}

}  // namespace

void fail_in_file(const std::string& file, const std::string& problem) {
  throw Error(ELIZA_ERR_BUNDLE_INVALID, shown(file, kMostPathBytes) + ": " + problem);
}

std::string read_text_file(const std::string& path, size_t max_bytes, const std::string& kind) {
  try {
    const RegularFile file(path);
    std::string text;
    // At once: growing by doubling would take twice the file's size on the way.
    text.reserve(std::min(static_cast<size_t>(file.size()), max_bytes));
    char part[16384];
    while (const size_t size = file.read_at(text.size(), part, sizeof part)) {
      text.append(part, size);
      if (text.size() > max_bytes) {
        fail_in_file(path, "is larger than " + std::to_string(max_bytes) + " bytes, too large for " + kind);
      }
    }
    return text;
  } catch (const Unreadable& problem) {
    fail_in_file(path, problem.what());
  }
}

nlohmann::json parse_json(std::string_view text, const std::string& file,
                          const nlohmann::json::parser_callback_t& callback) {
  if (text.find('\0') != text.npos) fail_in_file(file, "not valid JSON: it holds a NUL byte");
  try {
    return nlohmann::json::parse(text, callback);
  } catch (const nlohmann::json::exception& error) {
    fail_in_file(file, json_reason(error));
  }
}

nlohmann::json read_small_json(const std::string& file, const std::string& kind) {
  using Event = nlohmann::json::parse_event_t;
  constexpr size_t kMaxBytes = size_t{16} << 20;
  constexpr size_t kMaxValues = 200'000;
  constexpr size_t kMaxObjects = 8192;
  size_t values = 0, objects = 0;
  const auto watch = [&](int depth, Event event, nlohmann::json&) {
    if (static_cast<size_t>(depth) > kMaxJsonDepth) {
      fail_in_file(file, "is nested deeper than " + std::to_string(kMaxJsonDepth) + " levels");
    }
    if (++values > kMaxValues) fail_in_file(file, "holds more than " + std::to_string(kMaxValues) + " values");
    if (event == Event::object_start && ++objects > kMaxObjects) {
      fail_in_file(file, "holds more than " + std::to_string(kMaxObjects) + " objects");
    }
    return true;
  };
  return parse_json(read_text_file(file, kMaxBytes, kind), file, watch);
}

std::string place_name(const nlohmann::json::json_pointer& at) {
  constexpr size_t kMostBytes = 1024;
  return shown(at.to_string(), kMostBytes);
}

void JsonField::reject(const std::string& wanted) const {
  fail_in_file(*file_, name() + " is " + description() + "; it must be " + wanted);
}

std::optional<JsonField> JsonField::optional(const char* key) const {
  if (!value_->is_object()) reject("an object");
  const auto member = value_->find(key);
  if (member == value_->end()) return std::nullopt;
  return JsonField(*file_, at_ / key, &*member);
}

std::optional<JsonField> JsonField::present(const char* key) const {
  std::optional<JsonField> member = optional(key);
  if (member && member->value().is_null()) return std::nullopt;
  return member;
}

JsonField JsonField::required(const char* key, const std::string& wanted) const {
  std::optional<JsonField> member = optional(key);
  if (!member) fail_in_file(*file_, place_name(at_ / key) + " is missing; it must be " + wanted);
  return *std::move(member);
}

const std::string& JsonField::string(const std::string& wanted) const {
  if (!value_->is_string()) reject(wanted);
  return value_->get_ref<const std::string&>();
}

const std::string& JsonField::type() const { return required("type", "a string").string("a string"); }

bool JsonField::boolean() const {
  if (!value_->is_boolean()) reject("true or false");
  return value_->get<bool>();
}

uint64_t JsonField::whole_number(uint64_t least, uint64_t most) const {
  if (!value_->is_number_unsigned() || value_->get<uint64_t>() < least || value_->get<uint64_t>() > most) {
    reject("a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return value_->get<uint64_t>();
}

bool JsonField::boolean_or(const char* key, bool otherwise) const {
  const std::optional<JsonField> member = present(key);
  return member ? member->boolean() : otherwise;
}

std::string JsonField::string_or(const char* key, const std::string& otherwise) const {
  const std::optional<JsonField> member = present(key);
  return member ? member->string("a string") : otherwise;
}

std::string JsonField::description() const {
  if (value_->is_object()) return "an object";
  if (value_->is_array()) return "an array";
  if (value_->is_string()) return in_quotes(value_->get_ref<const std::string&>());
  return value_->dump();
}

}  // namespace eliza
