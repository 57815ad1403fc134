// What llama.cpp's converter would leave out of a JSON schema without a word, as an error.
//
// The converter reads a few keywords of each schema, which ones depends on the others, and passes over the rest: an
// answer would have the grammar's form and not the schema's. Here every keyword that constrains an answer is either one
// that the converter honours where it stands, or named in an error, with the path to it. What annotates, such as
// `title`, and what no specification knows, constrains nothing. Where a grammar is stricter than its schema (properties
// in order, no others where `additionalProperties` is not there) that is left as it is.
#pragma once

#include <nlohmann/json.hpp>

namespace eliza::llama_cpp {

// Also rewrites patterns (json-pattern.h), for the converter. Throws std::runtime_error. What is malformed is left for
// the converter to say.
void check_json_schema(nlohmann::ordered_json* schema);

}  // namespace eliza::llama_cpp
