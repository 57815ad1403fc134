// SQLite's promise: every allocation, and everything asked of the file system, is made to fail once, and from then on
// for ever, in a loop over a whole session; each time the library returns an error and loses nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "native/include/eliza-inference-ffi.h"
#include "tests/faults/injector.h"

namespace eliza::faults {

// A line of JSON on stdout. `expect`: unless it holds.
void problem(std::string what);
void expect(bool holds, const char* what);
int problems();
void begin_loop(const std::string& what, Kind kind);  // for their report

// What a session does, and what is to come of it.
struct Course {
  std::string bundle;
  std::string slots;  // a folder, empty
  eliza_llm_stream_config_t config = ELIZA_LLM_STREAM_CONFIG_DEFAULT;
  std::string prompt;
  std::string text;  // generated after it
  std::string more;  // after a reset to the prompt and that text by a slot
  std::string more_text;
};

// Walks it through the C ABI with the `nth` call of a kind failing. False: there is no such call any more. Counts one
// more of `*errors` where a call of the ABI failed.
bool walk(const Course& course, Kind kind, int64_t nth, bool sticky, int64_t* errors);

// Calls `run` for every N, until it returns false. Nothing may be leaked by any. Prints a line of JSON.
using Run = std::function<bool(Kind, int64_t nth, bool sticky, int64_t* errors)>;
void every(const char* what, Kind kind, bool sticky, const Run& run);

}  // namespace eliza::faults
