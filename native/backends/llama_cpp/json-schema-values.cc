#include "native/backends/llama_cpp/json-schema-values.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace eliza::llama_cpp {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostDepth = 64;  // the converter's, of $ref within $ref

// Alternatives of alternatives can be many, and so can pairs of constants; what is beyond may be anything, for all that
// is known.
constexpr size_t kMostSteps = size_t{1} << 17;
constexpr size_t kComparisonsPerStep = 64;

Json values_of(const Json& schema) {
  if (schema.contains("const")) return Json::array({schema.at("const")});
  return schema.contains("enum") && schema.at("enum").is_array() ? schema.at("enum") : Json::array();
}

bool is_plain_object(const Json& schema) {
  return !has_any(schema, {"oneOf", "anyOf", "const", "enum"}) && schema.contains("properties") &&
         schema.at("properties").is_object();
}

bool requires_property(const Json& schema, const std::string& name) {
  return schema.contains("required") && schema.at("required").is_array() &&
         std::find(schema.at("required").begin(), schema.at("required").end(), Json(name)) !=
             schema.at("required").end();
}

}  // namespace

unsigned types_called(const Json& name) {
  if (name.is_array()) {
    unsigned types = 0;
    for (const Json& one : name) types |= types_called(one);
    return types;
  }
  if (!name.is_string()) return kAllTypes;
  const std::string text = name.get<std::string>();
  if (text == "null") return kNull;
  if (text == "boolean") return kBoolean;
  if (text == "integer") return kInteger;
  if (text == "number") return kInteger | kFraction;
  if (text == "string") return kString;
  if (text == "array") return kArray;
  return text == "object" ? kObject : kAllTypes;
}

unsigned type_of(const Json& value) {
  if (value.is_null()) return kNull;
  if (value.is_boolean()) return kBoolean;
  if (value.is_number_integer()) return kInteger;
  if (value.is_number()) return std::floor(value.get<double>()) == value.get<double>() ? kInteger : kFraction;
  if (value.is_string()) return kString;
  return value.is_array() ? kArray : kObject;
}

bool has_any(const Json& schema, std::initializer_list<const char*> keywords) {
  return std::any_of(keywords.begin(), keywords.end(), [&](const char* keyword) { return schema.contains(keyword); });
}

bool has_properties(const Json& schema) {
  return schema.contains("properties") ||
         (schema.contains("additionalProperties") && schema.at("additionalProperties") != true);
}

const Json* SchemaValues::resolve(const Json& ref) const {
  if (!ref.is_string()) return nullptr;
  const std::string text = ref.get<std::string>();
  if (text.rfind("#/", 0) != 0) return nullptr;
  const Json* target = root_;
  for (size_t begin = 2, end = 0; end != text.size(); begin = end + 1) {
    end = std::min(text.find('/', begin), text.size());
    const std::string key = text.substr(begin, end - begin);
    if (target->is_object() && target->contains(key)) {
      target = &target->at(key);
    } else if (target->is_array() && !key.empty() && key.find_first_not_of("0123456789") == std::string::npos &&
               key.size() < 10 && std::stoul(key) < target->size()) {
      target = &target->at(std::stoul(key));
    } else {
      return nullptr;
    }
  }
  return target;
}

const Json* SchemaValues::follow(const Json* schema) const {
  for (int i = 0; schema != nullptr && schema->is_object() && schema->contains("$ref"); ++i) {
    schema = i < kMostDepth ? resolve(schema->at("$ref")) : nullptr;
  }
  return schema != nullptr && schema->is_object() ? schema : nullptr;
}

unsigned SchemaValues::types_of(const Json* any_schema, int depth) const {
  const Json* const schema = follow(any_schema);
  if (schema == nullptr || depth > kMostDepth || ++steps_ > kMostSteps) return kAllTypes;
  for (const char* key : {"oneOf", "anyOf"}) {
    if (!schema->contains(key)) continue;
    unsigned types = 0;
    for (const Json& one : schema->at(key)) types |= types_of(&one, depth + 1);
    return types;
  }
  if (schema->contains("const")) return type_of(schema->at("const"));
  if (schema->contains("enum")) {
    unsigned types = 0;
    for (const Json& value : schema->at("enum")) types |= type_of(value);
    return types;
  }
  if (schema->contains("type")) return types_called(schema->at("type"));
  if (has_properties(*schema)) return kObject;
  if (schema->contains("allOf")) {
    unsigned types = kAllTypes;
    for (const Json& one : schema->at("allOf")) types &= types_of(&one, depth + 1);
    return types;
  }
  if (has_any(*schema, {"items", "prefixItems"})) return kArray;
  return has_any(*schema, {"pattern", "minLength", "maxLength", "format"}) ? kString : kAllTypes;
}

bool SchemaValues::disjoint(const Json* any_a, const Json* any_b, int depth) const {
  if ((types_of(any_a, 0) & types_of(any_b, 0)) == 0) return true;
  const Json* const a = follow(any_a);
  const Json* const b = follow(any_b);
  if (a == nullptr || b == nullptr || depth > 4 || ++steps_ > kMostSteps) return false;
  const Json a_values = values_of(*a);
  const Json b_values = values_of(*b);
  if (!a_values.empty() && !b_values.empty()) {
    steps_ += a_values.size() * b_values.size() / kComparisonsPerStep;
    if (steps_ > kMostSteps) return false;
    return std::none_of(a_values.begin(), a_values.end(), [&](const Json& value) {
      return std::find(b_values.begin(), b_values.end(), value) != b_values.end();
    });
  }
  if (!is_plain_object(*a) || !is_plain_object(*b)) return false;
  for (const auto& [name, property] : a->at("properties").items()) {
    if (!requires_property(*a, name) || !requires_property(*b, name) || !b->at("properties").contains(name)) continue;
    if (disjoint(&property, &b->at("properties").at(name), depth + 1)) return true;
  }
  return false;
}

}  // namespace eliza::llama_cpp
