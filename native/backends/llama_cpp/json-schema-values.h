// What values a JSON schema allows, as far as types, constants and references tell: read with the precedence of
// keywords that llama.cpp's converter has (common/json-schema.cpp).
#pragma once

#include <cstddef>
#include <initializer_list>
#include <nlohmann/json.hpp>

namespace eliza::llama_cpp {

// Sets of types, as bits.
enum SchemaTypes : unsigned {
  kNull = 1,
  kBoolean = 2,
  kInteger = 4,
  kFraction = 8,  // a number that is no integer
  kString = 16,
  kArray = 32,
  kObject = 64,
  kAllTypes = 127,
};

// The types that a `type` names, a string or an array of them; all of them where it names none.
unsigned types_called(const nlohmann::ordered_json& name);

unsigned type_of(const nlohmann::ordered_json& value);

bool has_any(const nlohmann::ordered_json& schema, std::initializer_list<const char*> keywords);

// What the converter takes a schema without a type for an object by.
bool has_properties(const nlohmann::ordered_json& schema);

// Of the schemas within one document, which outlives it.
class SchemaValues {
 public:
  explicit SchemaValues(const nlohmann::ordered_json* root) : root_(root) {}

  // What a $ref refers to; nullptr where that is nothing, which is for the converter to say.
  const nlohmann::ordered_json* resolve(const nlohmann::ordered_json& ref) const;

  // The schema at the end of a chain of $ref; nullptr where there is none.
  const nlohmann::ordered_json* follow(const nlohmann::ordered_json* schema) const;

  // The types of the values that the converter's grammar for a schema may allow: perhaps some too many.
  unsigned types_of(const nlohmann::ordered_json* schema, int depth = 0) const;

  // Whether no value matches both, as far as types and constants tell.
  bool disjoint(const nlohmann::ordered_json* a, const nlohmann::ordered_json* b, int depth = 0) const;

 private:
  const nlohmann::ordered_json* const root_;
  mutable size_t steps_ = 0;
};

}  // namespace eliza::llama_cpp
