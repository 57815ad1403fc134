#include "native/backends/llama_cpp/json-schema-check.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_set>

#include "native/backends/llama_cpp/json-pattern.h"
#include "native/backends/llama_cpp/json-schema-values.h"

namespace eliza::llama_cpp {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostDepth = 64;  // the converter's
constexpr int kMostNodes = 4096;
constexpr int kMostRepetitions = 2000;  // a grammar's

// Looking at pairs of alternatives takes its time, and at pairs of constants, here and in the converter.
constexpr size_t kMostAlternatives = 100;
constexpr size_t kMostComparisons = size_t{1} << 23;

// By the type of the values that they constrain.
constexpr std::string_view kStringKeywords[] = {"pattern", "format", "minLength", "maxLength"};
constexpr std::string_view kNumberKeywords[] = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
                                                "multipleOf"};
constexpr std::string_view kArrayKeywords[] = {"items",    "prefixItems", "additionalItems", "contains",
                                               "minItems", "maxItems",    "uniqueItems",     "unevaluatedItems"};
constexpr std::string_view kObjectKeywords[] = {
    "properties", "patternProperties", "additionalProperties", "propertyNames", "minProperties",        "maxProperties",
    "required",   "dependentRequired", "dependentSchemas",     "dependencies",  "unevaluatedProperties"};
constexpr std::string_view kOtherKeywords[] = {"allOf", "anyOf", "oneOf",       "not",          "if",
                                               "const", "enum",  "$dynamicRef", "$recursiveRef"};

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw std::runtime_error("at " + path + ": " + what);
}

std::string quoted(std::string_view keyword) { return "'" + std::string(keyword) + "'"; }

// What says nothing, as some generators write it.
bool is_harmless(std::string_view keyword, const Json& value) {
  if (value.is_boolean()) {
    const bool allows_all = keyword == "additionalProperties" || keyword == "unevaluatedProperties" ||
                            keyword == "unevaluatedItems" || keyword == "additionalItems" || keyword == "items";
    return allows_all ? value.get<bool>() : keyword == "uniqueItems" && !value.get<bool>();
  }
  if (value.is_number()) {
    const bool counts = keyword.rfind("min", 0) == 0 && keyword != "minimum";
    return (counts && value.get<double>() <= 0) || (keyword == "multipleOf" && value.get<double>() == 1);
  }
  return (keyword == "required" || keyword == "properties" || keyword == "patternProperties") && value.empty();
}

// The same walk as that of common/json-schema.cpp, with the same precedence of keywords.
class Checker {
 public:
  explicit Checker(Json* root) : values_(root) {}

  void node(Json& schema, const std::string& path) {
    if (!schema.is_object()) return;
    if (++depth_ > kMostDepth)
      fail(path, "nested deeper than " + std::to_string(kMostDepth) + " levels, $ref included");
    if (++nodes_ > kMostNodes) fail(path, "more than " + std::to_string(kMostNodes) + " schemas");
    refuse(schema, path, {"not", "if", "$dynamicRef", "$recursiveRef"}, "has no counterpart in a grammar");
    if (schema.contains("$ref")) {
      reference(schema, path);
    } else if (has_any(schema, {"oneOf", "anyOf"})) {
      alternatives(schema, path);
    } else if (has_any(schema, {"const", "enum"})) {
      values(schema, path);
    } else if (schema.contains("type") && schema.at("type").is_array()) {
      for (const Json& type : schema.at("type")) typed(schema, path, type.is_string() ? type.get<std::string>() : "");
    } else if (schema.contains("type")) {
      typed(schema, path, schema.at("type").is_string() ? schema.at("type").get<std::string>() : "");
    } else {
      untyped(schema, path);
    }
    --depth_;
  }

 private:
  static void refuse_one(const Json& schema, const std::string& path, std::string_view keyword,
                         const std::string& why) {
    const auto found = schema.find(std::string(keyword));
    if (found != schema.end() && !is_harmless(keyword, *found)) fail(path, quoted(keyword) + " " + why);
  }

  static void refuse(const Json& schema, const std::string& path, std::initializer_list<std::string_view> keywords,
                     const std::string& why) {
    for (const std::string_view keyword : keywords) refuse_one(schema, path, keyword, why);
  }

  // All that constrain, but for the one that is honoured.
  static void refuse_others(const Json& schema, const std::string& path, std::string_view honoured,
                            const std::string& why) {
    const auto refuse_all = [&](const auto& keywords) {
      for (const std::string_view keyword : keywords) {
        if (keyword != honoured) refuse_one(schema, path, keyword, why);
      }
    };
    refuse_all(kStringKeywords);
    refuse_all(kNumberKeywords);
    refuse_all(kArrayKeywords);
    refuse_all(kObjectKeywords);
    refuse_all(kOtherKeywords);
  }

  void reference(Json& schema, const std::string& path) {
    refuse_others(schema, path, "",
                  "beside '$ref' would be ignored; put both into schemas of an 'allOf', or merge them");
    const Json* end = &schema;
    for (int i = 0; end != nullptr && end->is_object() && end->contains("$ref"); ++i) {
      if (i == kMostDepth)
        fail(path, "'$ref' leads to more than " + std::to_string(kMostDepth) + " others, or back to itself");
      end = values_.resolve(end->at("$ref"));
    }
    Json* const target = const_cast<Json*>(values_.resolve(schema.at("$ref")));  // within the root, which is not
    if (target == nullptr) return;
    if (schema.contains("type") && (values_.types_of(target) & ~types_called(schema.at("type"))) != 0) {
      fail(path, "'type' beside '$ref' would be ignored; leave it out, or narrow what '$ref' refers to");
    }
    const std::string ref = schema.at("$ref").get<std::string>();
    if (seen_.insert(ref).second) node(*target, ref);
  }

  void alternatives(Json& schema, const std::string& path) {
    const std::string key = schema.contains("oneOf") ? "oneOf" : "anyOf";
    refuse_others(schema, path, key, "beside '" + key + "' would be ignored; put it into each alternative");
    Json& all = schema.at(key);
    if (!all.is_array()) return;
    const unsigned types = schema.contains("type") ? types_called(schema.at("type")) : kAllTypes;
    for (size_t i = 0; i < all.size(); ++i) {
      if ((values_.types_of(&all.at(i)) & ~types) != 0) {
        fail(path, "'type' beside '" + key + "' would be ignored; put it into each alternative");
      }
      node(all.at(i), path + "/" + key + "/" + std::to_string(i));
    }
    if (key != "oneOf") return;
    if (all.size() > kMostAlternatives) {
      fail(path, "'oneOf' has more than " + std::to_string(kMostAlternatives) + " alternatives; write 'anyOf'");
    }
    for (size_t i = 0; i < all.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (values_.disjoint(&all.at(i), &all.at(j))) continue;
        fail(path, "'oneOf' wants exactly one to match, and its alternatives " + std::to_string(j) + " and " +
                       std::to_string(i) + " may both: write 'anyOf', or make them differ in a type or a constant");
      }
    }
  }

  void values(const Json& schema, const std::string& path) {
    const std::string key = schema.contains("const") ? "const" : "enum";
    refuse_others(schema, path, key, "beside '" + key + "' would be ignored; leave it out");
    if (!schema.contains("type")) return;
    const unsigned types = types_called(schema.at("type"));
    const Json one = Json::array({schema.at(key)});
    for (const Json& value : key == "const" ? one : schema.at(key)) {
      if ((type_of(value) & types) == 0) {
        fail(path, "'" + key + "' has a value that is not of the schema's 'type': " + value.dump());
      }
    }
  }

  void untyped(Json& schema, const std::string& path) {
    if (has_properties(schema)) {
      object(schema, path);
    } else if (schema.contains("allOf")) {
      all_of(schema, path);
    } else if (has_any(schema, {"items", "prefixItems"})) {
      array(schema, path);
    } else if (has_any(schema, {"pattern", "minLength", "maxLength", "format"})) {
      string(schema, path);
    } else {
      refuse_others(schema, path, "", "needs a 'type' beside it");
    }
  }

  void typed(Json& schema, const std::string& path, const std::string& type) {
    if (type == "object") {
      if (!has_properties(schema) && schema.contains("allOf")) return all_of(schema, path);
      return object(schema, path);
    }
    if (type == "string") {
      if (schema.contains("allOf")) return all_of(schema, path);
      return string(schema, path);
    }
    refuse(schema, path, {"allOf"}, "beside the type '" + type + "' would be ignored; merge it");
    if (type == "array") return array(schema, path);
    if (type == "integer") return integer(schema, path);
    if (type == "number") {
      refuse(schema, path, {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
             "has a counterpart in a grammar for the type 'integer' only");
    }
  }

  void object(Json& schema, const std::string& path) {
    refuse(schema, path, {"allOf"}, "beside 'properties' would be ignored; merge them");
    refuse(schema, path,
           {"patternProperties", "propertyNames", "dependentRequired", "dependentSchemas", "dependencies"},
           "has no counterpart in a grammar");
    Json none = Json::object();
    Json& properties = schema.contains("properties") ? schema.at("properties") : none;
    if (!properties.is_object()) return;
    const size_t required = check_required(schema, path, properties);
    const bool closed = schema.contains("properties") &&
                        (!schema.contains("additionalProperties") || schema.at("additionalProperties") == false);
    if (!closed) refuse(schema, path, {"unevaluatedProperties"}, "beside additional properties would be ignored");
    const auto count = [&](const char* key, double otherwise) {
      return schema.contains(key) && schema.at(key).is_number() ? schema.at(key).get<double>() : otherwise;
    };
    if (count("minProperties", 0) > static_cast<double>(required)) {
      fail(path, "'minProperties' has no counterpart in a grammar beyond the number of required properties");
    }
    if (schema.contains("maxProperties") &&
        (!closed || count("maxProperties", 0) < static_cast<double>(properties.size()))) {
      fail(path, "'maxProperties' has no counterpart in a grammar below the number of properties");
    }
    for (auto& [name, property] : properties.items()) node(property, path + "/properties/" + name);
    if (schema.contains("additionalProperties")) {
      node(schema.at("additionalProperties"), path + "/additionalProperties");
    }
  }

  static size_t check_required(const Json& schema, const std::string& path, const Json& properties) {
    if (!schema.contains("required")) return 0;
    const Json& required = schema.at("required");
    if (!required.is_array()) fail(path, "'required' must be an array of names");
    for (const Json& name : required) {
      if (!name.is_string()) fail(path, "'required' must be an array of names");
      if (!properties.contains(name.get<std::string>())) {
        fail(path, "'required' names " + name.dump() + ", which is not among the properties");
      }
    }
    return required.size();
  }

  // At least two are merged, as far as they are objects or enums.
  void all_of(Json& schema, const std::string& path) {
    refuse_others(schema, path, "allOf", "beside 'allOf' would be ignored; put it into one of its schemas");
    Json& all = schema.at("allOf");
    if (!all.is_array()) return;
    const unsigned types = schema.contains("type") ? types_called(schema.at("type")) : kAllTypes;
    size_t enums = 0;
    std::unordered_set<std::string> names;
    for (size_t i = 0; i < all.size(); ++i) {
      const std::string child_path = path + "/allOf/" + std::to_string(i);
      if ((values_.types_of(&all.at(i)) & ~types) != 0) {
        fail(path, "'type' beside 'allOf' would be ignored; put it into each of its schemas");
      }
      node(all.at(i), child_path);
      const Json* const child = values_.follow(&all.at(i));
      if (all.size() == 1 || child == nullptr) continue;
      if (child->contains("enum")) {
        ++enums;
      } else {
        merge(*child, child_path, &names);
      }
    }
    if (enums > 0 && enums == all.size() && comparisons(all) > kMostComparisons) {
      fail(path, "'allOf' of enums with too many values to compare; write one 'enum' of what they have in common");
    }
    if (enums > 0 && (enums < all.size() || !have_common_value(all))) {
      fail(path, "'allOf' of an 'enum' and something else, or of enums without a common value");
    }
  }

  // An object whose properties join those of others.
  static void merge(const Json& schema, const std::string& path, std::unordered_set<std::string>* names) {
    const bool is_object = !has_any(schema, {"oneOf", "anyOf", "const", "allOf"}) &&
                           (schema.contains("type") ? schema.at("type") == "object" : has_properties(schema));
    if (!is_object) fail(path, "'allOf' of several schemas that are not all objects, or all enums, cannot be merged");
    refuse(schema, path, {"additionalProperties", "unevaluatedProperties", "maxProperties"},
           "in one of several schemas of an 'allOf' would be ignored");
    if (!schema.contains("properties")) return;
    for (const auto& [name, property] : schema.at("properties").items()) {
      if (!names->insert(name).second) {
        fail(path, "'allOf' has the property " + Json(name).dump() + " in several of its schemas; merge them");
      }
    }
  }

  // Of each value of the first enum with those of all the others.
  size_t comparisons(const Json& all) const {
    size_t values = 0;
    for (const Json& one : all) values += values_.follow(&one)->at("enum").size();
    return values_.follow(&all.at(0))->at("enum").size() * values;
  }

  bool have_common_value(const Json& all) const {
    const Json* const first = values_.follow(&all.at(0));
    if (first == nullptr || !first->at("enum").is_array()) return true;
    return std::any_of(first->at("enum").begin(), first->at("enum").end(), [&](const Json& value) {
      return std::all_of(all.begin(), all.end(), [&](const Json& other) {
        const Json* const schema = values_.follow(&other);
        const Json& values = schema->at("enum");
        return std::find(values.begin(), values.end(), value) != values.end();
      });
    });
  }

  void check_limit(const Json& schema, const std::string& path, std::initializer_list<const char*> keywords) {
    for (const char* keyword : keywords) {
      if (!schema.contains(keyword) || !schema.at(keyword).is_number()) continue;
      if (schema.at(keyword).get<double>() <= static_cast<double>(kMostRepetitions)) continue;
      fail(path, quoted(keyword) + " is " + schema.at(keyword).dump() + ", where a grammar repeats at most " +
                     std::to_string(kMostRepetitions) + " times");
    }
  }

  void array(Json& schema, const std::string& path) {
    refuse(schema, path, {"contains"}, "has no counterpart in a grammar");
    const bool at_most_one =
        schema.contains("maxItems") && schema.at("maxItems").is_number() && schema.at("maxItems").get<double>() <= 1;
    if (!at_most_one) refuse(schema, path, {"uniqueItems"}, "has no counterpart in a grammar");
    check_limit(schema, path, {"minItems", "maxItems"});
    if (!has_any(schema, {"items", "prefixItems"})) {
      return refuse(schema, path, {"unevaluatedItems"}, "without 'items' would be ignored");
    }
    if (schema.contains("items")) refuse(schema, path, {"prefixItems"}, "beside 'items' would be ignored");
    const std::string key = schema.contains("items") ? "items" : "prefixItems";
    Json& items = schema.at(key);
    if (!items.is_array()) return node(items, path + "/" + key);
    // As many as there are, which is what the converter asks for.
    const double size = static_cast<double>(items.size());
    for (const char* bound : {"minItems", "maxItems"}) {
      const bool fits =
          !schema.contains(bound) || !schema.at(bound).is_number() ||
          (bound[1] == 'i' ? schema.at(bound).get<double>() <= size : schema.at(bound).get<double>() >= size);
      if (!fits) fail(path, quoted(bound) + " does not allow as many items as '" + key + "' has");
    }
    for (size_t i = 0; i < items.size(); ++i) node(items.at(i), path + "/" + key + "/" + std::to_string(i));
  }

  void string(Json& schema, const std::string& path) {
    refuse(schema, path, {"allOf"}, "beside other constraints on a string would be ignored; merge them");
    check_limit(schema, path, {"minLength", "maxLength"});
    if (schema.contains("format")) check_format(schema, path);
    if (!schema.contains("pattern") || !schema.at("pattern").is_string()) return;
    refuse(schema, path, {"format", "minLength", "maxLength"},
           "beside 'pattern' would be ignored; write it as a pattern");
    if (!rewritten_.insert(&schema).second) return;  // once for each of several types
    const std::string pattern = schema.at("pattern").get<std::string>();
    try {
      schema["pattern"] = json_pattern(pattern);
    } catch (const std::runtime_error& error) {
      fail(path, "'pattern' " + pattern + ": " + error.what());
    }
  }

  static void check_format(const Json& schema, const std::string& path) {
    const Json& format = schema.at("format");
    if (!format.is_string()) return;
    const std::string name = format.get<std::string>();
    const bool uuid =
        name == "uuid" || (name.size() == 5 && name.rfind("uuid", 0) == 0 && name[4] >= '1' && name[4] <= '5');
    if (!uuid && name != "date" && name != "time" && name != "date-time") {
      fail(path, "'format' " + format.dump() + " has no counterpart in a grammar; date, time, date-time and uuid have");
    }
    refuse(schema, path, {"minLength", "maxLength"}, "beside 'format' would be ignored; leave it out");
  }

  static void integer(const Json& schema, const std::string& path) {
    refuse(schema, path, {"multipleOf"}, "has no counterpart in a grammar");
    if (schema.contains("minimum")) refuse(schema, path, {"exclusiveMinimum"}, "beside 'minimum' would be ignored");
    if (schema.contains("maximum")) refuse(schema, path, {"exclusiveMaximum"}, "beside 'maximum' would be ignored");
  }

  const SchemaValues values_;
  int depth_ = 0;
  int nodes_ = 0;
  std::unordered_set<std::string> seen_;       // $ref
  std::unordered_set<const Json*> rewritten_;  // schemas whose pattern is the converter's by now
};

}  // namespace

void check_json_schema(nlohmann::ordered_json* schema) { Checker(schema).node(*schema, "#"); }

}  // namespace eliza::llama_cpp
