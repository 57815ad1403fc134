#include <new>
#include <string>

#include "common/json-schema-to-grammar.h"
#include "native/backends/llama_cpp/llama-cpp.h"
#include "native/base/error.h"

namespace eliza::llama_cpp {
namespace {

// The converter recurses into the schema; no schema that means something is nested deeper.
constexpr int kMostNesting = 200;

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

// An exception's words without the tag that nlohmann/json puts before its own, "[json.exception.parse_error.101] ".
std::string words_of(const std::exception& error) {
  const std::string what = error.what();
  const size_t end = what.rfind("[json.exception.", 0) == 0 ? what.find("] ") : std::string::npos;
  return end == std::string::npos ? what : what.substr(end + 2);
}

}  // namespace

std::string json_schema_to_gbnf(const std::string& schema) {
  if (nesting(schema) > kMostNesting) {
    throw Error(ELIZA_ERR_INVALID_ARG,
                "the JSON schema is nested deeper than " + std::to_string(kMostNesting) + " levels");
  }
  try {
    return json_schema_to_grammar(common_json::parse(schema));
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(ELIZA_ERR_INVALID_ARG, "no GBNF grammar for this JSON schema: " + words_of(error));
  }
}

}  // namespace eliza::llama_cpp
