#include "native/backends/mlx/config.h"

#include <sys/stat.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "native/base/error.h"
#include "native/base/word-hash.h"

namespace eliza::mlx {
namespace {

using Json = nlohmann::json;

// Far more than any config has.
constexpr size_t kMostBytes = size_t{16} << 20;
constexpr int kMostDepth = 32;
// Keys and brackets with them; an index has two for each tensor.
constexpr size_t kMostValues = 200'000;
constexpr size_t kMostObjects = 8192;  // the parser goes through a list's elements after each of them that is an object
constexpr size_t kMostShown = 80;

[[noreturn]] void fail(const std::string& file, const std::string& problem) {
  throw Error(ELIZA_ERR_BUNDLE_INVALID, file + ": " + problem);
}

Json parse(const std::string& file) {
  struct stat info{};
  if (::stat(file.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) fail(file, "is missing, or is no file");
  if (static_cast<uint64_t>(info.st_size) > kMostBytes) {
    fail(file, "has " + std::to_string(info.st_size) + " bytes, too many for what it is");
  }
  std::ifstream stream(file, std::ios::binary);
  if (!stream) fail(file, "cannot be read");
  size_t values = 0;
  size_t objects = 0;
  const auto watch = [&](int depth, Json::parse_event_t event, Json&) {
    if (depth > kMostDepth) fail(file, "is nested deeper than " + std::to_string(kMostDepth) + " levels");
    if (++values > kMostValues) fail(file, "holds more than " + std::to_string(kMostValues) + " values");
    if (event == Json::parse_event_t::object_start && ++objects > kMostObjects) {
      fail(file, "holds more than " + std::to_string(kMostObjects) + " objects");
    }
    return true;
  };
  try {
    Json json = Json::parse(stream, watch);
    if (!json.is_object()) fail(file, "is no JSON object");
    return json;
  } catch (const Json::exception& error) {
    std::string reason = error.what();
    if (reason.size() > 200) reason = reason.substr(0, 200) + "...";
    fail(file, "is not valid JSON: " + reason);
  }
}

std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() > kMostShown ? text.substr(0, kMostShown) + "..." : text;
}

std::string shown(double value) {
  std::ostringstream text;
  text.precision(12);
  text << value;
  return text.str();
}

// Gemma 3 and 4 come alone, or as the text part of a model with vision.
constexpr const char* kModelTypes[] = {"gemma3_text", "gemma3", "gemma4_text", "gemma4", "llama"};

}  // namespace

struct Config::Node {
  std::shared_ptr<const Json> document;  // keeps `value` alive
  const Json* value;
  std::string file;
  std::string prefix;                 // of the names of its keys
  std::shared_ptr<const Node> outer;  // where to look for what is not here; null: nowhere

  struct Found {
    const Json* value = nullptr;
    const Node* in = nullptr;
  };

  Found find(const std::string& key) const {
    for (const Node* node = this; node != nullptr; node = node->outer.get()) {
      const auto member = node->value->find(key);
      if (member != node->value->end() && !member->is_null()) return {&*member, node};
    }
    return {nullptr, this};
  }
};

Config Config::read(const std::string& directory) {
  const std::string file = directory + "/config.json";
  const auto document = std::make_shared<const Json>(parse(file));
  return Config(std::make_shared<const Node>(Node{document, document.get(), file, "", nullptr}));
}

std::optional<Config> Config::read_optional(const std::string& directory, const std::string& name) {
  const std::string file = directory + "/" + name;
  struct stat info{};
  if (::stat(file.c_str(), &info) != 0) return std::nullopt;
  const auto document = std::make_shared<const Json>(parse(file));
  return Config(std::make_shared<const Node>(Node{document, document.get(), file, "", nullptr}));
}

const std::string& Config::file() const { return node_->file; }

uint64_t Config::fingerprint() const {
  const std::string text = node_->document->dump(-1, ' ', false, Json::error_handler_t::replace);
  return word_hash(kWordHashSeed, text.data(), text.size());
}

bool Config::has(const std::string& key) const { return node_->find(key).value != nullptr; }

bool Config::is_null(const std::string& key) const {
  const auto member = node_->value->find(key);
  return member != node_->value->end() && member->is_null();
}

std::string Config::name_of(const std::string& key) const { return node_->find(key).in->prefix + key; }

void Config::reject(const std::string& key, const std::string& wanted) const {
  const Node::Found found = node_->find(key);
  const std::string what = found.value == nullptr ? " is missing" : " is " + shown(*found.value);
  fail(node_->file, found.in->prefix + key + what + "; it must be " + wanted);
}

int64_t Config::integer(const std::string& key, Range range, std::optional<int64_t> fallback) const {
  const Json* value = node_->find(key).value;
  if (value == nullptr && fallback) return *fallback;
  // Written as 1e6 or 512.0 in some files.
  const double number = value != nullptr && value->is_number() ? value->get<double>() : std::nan("");
  if (!(number >= range.least && number <= range.most) || number != std::floor(number)) {
    reject(key, "a whole number from " + shown(range.least) + " to " + shown(range.most));
  }
  return static_cast<int64_t>(number);
}

double Config::number(const std::string& key, Range range, std::optional<double> fallback) const {
  const Json* value = node_->find(key).value;
  if (value == nullptr && fallback) return *fallback;
  const double number = value != nullptr && value->is_number() ? value->get<double>() : std::nan("");
  if (!(number >= range.least && number <= range.most)) {
    reject(key, "a number from " + shown(range.least) + " to " + shown(range.most));
  }
  return number;
}

bool Config::boolean(const std::string& key, bool fallback) const {
  const Json* value = node_->find(key).value;
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) reject(key, "true or false");
  return value->get<bool>();
}

std::string Config::text(const std::string& key, std::optional<std::string> fallback) const {
  const Json* value = node_->find(key).value;
  if (value == nullptr && fallback) return *fallback;
  if (value == nullptr || !value->is_string()) reject(key, "a string");
  return value->get<std::string>();
}

std::vector<std::string> Config::texts(const std::string& key, size_t size) const {
  const Json* value = node_->find(key).value;
  bool fits = value != nullptr && value->is_array() && value->size() == size;
  for (size_t i = 0; fits && i < size; ++i) fits = (*value)[i].is_string();
  if (!fits) reject(key, "an array of " + std::to_string(size) + " strings");
  return value->get<std::vector<std::string>>();
}

std::vector<int64_t> Config::integers(const std::string& key, Range range) const {
  const Json* value = node_->find(key).value;
  if (value == nullptr) return {};
  std::vector<int64_t> result;
  const auto add = [&](const Json& element) {
    const double number = element.is_number_integer() ? element.get<double>() : std::nan("");
    if (!(number >= range.least && number <= range.most)) {
      reject(key, "a whole number from " + shown(range.least) + " to " + shown(range.most) + ", or an array of them");
    }
    result.push_back(static_cast<int64_t>(number));
  };
  if (value->is_array()) {
    for (const Json& element : *value) add(element);
  } else {
    add(*value);
  }
  return result;
}

std::vector<std::pair<std::string, std::string>> Config::text_members(const std::string& key) const {
  const Json* value = node_->find(key).value;
  if (value == nullptr || !value->is_object()) reject(key, "an object");
  std::vector<std::pair<std::string, std::string>> members;
  for (const auto& [name, member] : value->items()) {
    if (!member.is_string()) reject(key, "an object whose values are strings");
    members.emplace_back(name, member.get<std::string>());
  }
  return members;
}

std::optional<Config> Config::object(const std::string& key) const {
  const Node::Found found = node_->find(key);
  if (found.value == nullptr) return std::nullopt;
  if (!found.value->is_object()) reject(key, "an object");
  return Config(std::make_shared<const Node>(
      Node{found.in->document, found.value, node_->file, found.in->prefix + key + ".", nullptr}));
}

void require_known_model(const Config& config) {
  const std::string type = config.text("model_type", "");
  std::string known;
  for (const char* model_type : kModelTypes) {
    if (type == model_type) return;
    known += (known.empty() ? "one of " : ", ") + std::string(model_type);
  }
  config.reject("model_type", known);
}

Config Config::or_else(const Config& outer) const {
  Node node = *node_;
  node.outer = outer.node_;
  return Config(std::make_shared<const Node>(std::move(node)));
}

}  // namespace eliza::mlx
