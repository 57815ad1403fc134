#include "native/backends/mlx/config.h"

#include <cmath>

#include "native/base/number-text.h"
#include "native/base/regular-file.h"
#include "native/base/word-hash.h"
#include "native/text/json-document.h"

namespace eliza::mlx {
namespace {

using Json = nlohmann::json;

std::string range_text(Range range) {
  constexpr int kDigits = 12;
  return "from " + number_text(range.least, kDigits) + " to " + number_text(range.most, kDigits);
}

// Gemma 3 and 4 come alone, or as the text part of a model with vision.
constexpr const char* kModelTypes[] = {"gemma3_text", "gemma3", "gemma4_text", "gemma4", "llama"};

}  // namespace

struct Config::Document {
  std::string file;
  Json root;
};

struct Config::Node {
  std::shared_ptr<const Document> document;  // keeps `object` alive
  JsonField object;
  std::shared_ptr<const Node> outer;  // where to look for what is not here; null: nowhere

  std::optional<JsonField> find(const std::string& key) const {
    for (const Node* node = this; node != nullptr; node = node->outer.get()) {
      std::optional<JsonField> member = node->object.present(key.c_str());
      if (member) return member;
    }
    return std::nullopt;
  }
};

Config Config::read_file(const std::string& file) {
  const auto document = std::make_shared<const Document>(Document{file, read_small_json(file, "a model's settings")});
  const JsonField root(document->file, Json::json_pointer(), &document->root);
  if (!document->root.is_object()) root.reject("an object");
  return Config(std::make_shared<const Node>(Node{document, root, nullptr}));
}

Config Config::read(const std::string& directory) { return read_file(directory + "/config.json"); }

std::optional<Config> Config::read_optional(const std::string& directory, const std::string& name) {
  const std::string file = directory + "/" + name;
  if (!is_there(file)) return std::nullopt;
  return read_file(file);
}

const std::string& Config::file() const { return node_->object.file(); }

uint64_t Config::fingerprint() const {
  const std::string text = node_->document->root.dump(-1, ' ', false, Json::error_handler_t::replace);
  return word_hash(kWordHashSeed, text.data(), text.size());
}

bool Config::has(const std::string& key) const { return node_->find(key).has_value(); }

bool Config::is_null(const std::string& key) const {
  const std::optional<JsonField> member = node_->object.optional(key.c_str());
  return member && member->value().is_null();
}

void Config::reject(const std::string& key, const std::string& wanted) const {
  const std::optional<JsonField> field = node_->find(key);
  (field ? *field : node_->object.required(key.c_str(), wanted)).reject(wanted);
}

int64_t Config::integer(const std::string& key, Range range, std::optional<int64_t> fallback) const {
  const std::optional<JsonField> field = node_->find(key);
  if (!field && fallback) return *fallback;
  // Written as 1e6 or 512.0 in some files.
  const double number = field && field->value().is_number() ? field->value().get<double>() : std::nan("");
  if (!(number >= range.least && number <= range.most) || number != std::floor(number)) {
    reject(key, "a whole number " + range_text(range));
  }
  return static_cast<int64_t>(number);
}

double Config::number(const std::string& key, Range range, std::optional<double> fallback) const {
  const std::optional<JsonField> field = node_->find(key);
  if (!field && fallback) return *fallback;
  const double number = field && field->value().is_number() ? field->value().get<double>() : std::nan("");
  if (!(number >= range.least && number <= range.most)) reject(key, "a number " + range_text(range));
  return number;
}

bool Config::boolean(const std::string& key, bool fallback) const {
  const std::optional<JsonField> field = node_->find(key);
  return field ? field->boolean() : fallback;
}

std::string Config::text(const std::string& key, std::optional<std::string> fallback) const {
  const std::optional<JsonField> field = node_->find(key);
  if (!field && fallback) return *fallback;
  if (!field) reject(key, "a string");
  return field->string("a string");
}

std::vector<std::string> Config::texts(const std::string& key, size_t size) const {
  const std::optional<JsonField> field = node_->find(key);
  bool fits = field && field->value().is_array() && field->value().size() == size;
  for (size_t i = 0; fits && i < size; ++i) fits = field->value()[i].is_string();
  if (!fits) reject(key, "an array of " + std::to_string(size) + " strings");
  return field->value().get<std::vector<std::string>>();
}

std::vector<int64_t> Config::integers(const std::string& key, Range range) const {
  const std::optional<JsonField> field = node_->find(key);
  if (!field) return {};
  std::vector<int64_t> result;
  const auto add = [&](const Json& element) {
    const double number = element.is_number_integer() ? element.get<double>() : std::nan("");
    if (!(number >= range.least && number <= range.most)) {
      reject(key, "a whole number " + range_text(range) + ", or an array of them");
    }
    result.push_back(static_cast<int64_t>(number));
  };
  if (field->value().is_array()) {
    for (const Json& element : field->value()) add(element);
  } else {
    add(field->value());
  }
  return result;
}

std::vector<std::pair<std::string, std::string>> Config::text_members(const std::string& key) const {
  const std::optional<JsonField> field = node_->find(key);
  if (!field || !field->value().is_object()) reject(key, "an object");
  std::vector<std::pair<std::string, std::string>> members;
  for (const auto& [name, member] : field->value().items()) {
    if (!member.is_string()) reject(key, "an object whose values are strings");
    members.emplace_back(name, member.get<std::string>());
  }
  return members;
}

std::optional<Config> Config::object(const std::string& key) const {
  const std::optional<JsonField> field = node_->find(key);
  if (!field) return std::nullopt;
  if (!field->value().is_object()) field->reject("an object");
  return Config(std::make_shared<const Node>(Node{node_->document, *field, nullptr}));
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
