// The `pattern` of a JSON schema for llama.cpp's converter: a regular expression over the characters of a string
// becomes one over the characters of its JSON text, in which a quotation mark is \" and a backslash \\.
//
// The converter copies what a pattern holds into a grammar as it is. So an unanchored pattern, a dot that matches a
// quotation mark, \d and much else would be refused, or make an answer that is no JSON. Here a pattern is parsed as
// ECMA-262 has it (with the flag u), and written again in the part of the syntax that the converter takes faithfully.
#pragma once

#include <string>
#include <string_view>

namespace eliza::llama_cpp {

// Throws std::runtime_error, with the reason and the offset, where a pattern is malformed, or matches what no grammar
// of a bearable size can (lookaround, backreferences, word boundaries, Unicode properties). Every string that the
// result matches is the JSON text of one that `pattern` matches; control characters without a short escape are left
// out.
std::string json_pattern(std::string_view pattern);

}  // namespace eliza::llama_cpp
