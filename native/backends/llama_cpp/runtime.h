// llama.cpp as a guest in somebody else's process: started once, silent, and with its failures as exceptions.
#pragma once

#include <string>

namespace eliza::llama_cpp {

// Starts ggml and llama.cpp, sends their log to ours (native/base/log.h) and their failed assertions to CallScope.
// Idempotent; call before any other llama.cpp function.
void start_runtime();

// For as long as it lives, on the thread that made it:
//   - llama.cpp's error messages are collected, to say why a call failed that returned nothing but nullptr;
//   - a failed GGML_ASSERT throws std::runtime_error instead of ending the process, where `asserts` says so: in calls
//     that load, parse or set up on the calling thread. Not in llama_decode, whose workers would be left waiting for
//     a thread that an exception took away.
class CallScope {
 public:
  enum class Asserts { kThrow, kAbort };

  explicit CallScope(Asserts asserts = Asserts::kThrow);
  ~CallScope();
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

  // What llama.cpp reported so far, in one line of a bearable length; "no reason given" where it said nothing.
  std::string reason() const;

  // The same as it came.
  const std::string& errors() const { return errors_; }

  // For the callbacks of llama.cpp.
  void add(const char* text);
  bool asserts_throw() const { return asserts_ == Asserts::kThrow; }

 private:
  const Asserts asserts_;
  CallScope* const outer_;
  std::string errors_;
};

}  // namespace eliza::llama_cpp
