#include <new>
#include <nlohmann/json.hpp>
#include <string>

#include "common/json-schema-to-grammar.h"
#include "native/backends/llama_cpp/json-schema-check.h"
#include "native/backends/llama_cpp/llama-cpp.h"
#include "native/base/error.h"

namespace eliza::llama_cpp {
namespace {

// Limits that no schema which means something comes near. Those of schemas within schemas and of the grammar that comes
// out are the converter's own (third_party/llama_cpp/patches/0006-*).
constexpr size_t kMostBytes = size_t{256} << 10;
constexpr int kMostNesting = 200;
constexpr size_t kMostWordBytes = 500;

// How deep brackets of `json` are nested, those in strings left out.
int nesting(const std::string& json) {
  int depth = 0;
  int deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > deepest) deepest = depth;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest;
}

// An exception's words without the titles that nlohmann/json ("[json.exception.parse_error.101] ") and llama.cpp
// ("JSON schema error ") put before them.
std::string words_of(const std::exception& error) {
  constexpr char kTitle[] = "JSON schema error ";
  std::string words = error.what();
  const size_t end = words.rfind("[json.exception.", 0) == 0 ? words.find("] ") : std::string::npos;
  if (end != std::string::npos) words.erase(0, end + 2);
  if (words.rfind(kTitle, 0) == 0) words.erase(0, sizeof kTitle - 1);
  if (words.size() <= kMostWordBytes) return words;
  // A path or a pattern out of the schema is long. The end says what is wrong.
  size_t head = kMostWordBytes / 2;
  size_t tail = words.size() - kMostWordBytes / 2;
  while ((words[head] & 0xC0) == 0x80) --head;
  while ((words[tail] & 0xC0) == 0x80) ++tail;
  return words.substr(0, head) + "..." + words.substr(tail);
}

}  // namespace

std::string json_schema_to_gbnf(const std::string& schema) {
  if (schema.size() > kMostBytes) {
    throw Error(ELIZA_ERR_INVALID_ARG, "the JSON schema has more than " + std::to_string(kMostBytes) +
                                           " bytes: " + std::to_string(schema.size()) + "; make it smaller");
  }
  if (nesting(schema) > kMostNesting) {
    throw Error(ELIZA_ERR_INVALID_ARG,
                "the JSON schema is nested deeper than " + std::to_string(kMostNesting) + " levels; make it flatter");
  }
  try {
    nlohmann::ordered_json json = nlohmann::ordered_json::parse(schema);
    check_json_schema(&json);
    return json_schema_to_grammar(common_json::parse(json.dump()));
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(ELIZA_ERR_INVALID_ARG,
                "no GBNF grammar for this JSON schema: " + words_of(error) + "; change the schema");
  }
}

}  // namespace eliza::llama_cpp
