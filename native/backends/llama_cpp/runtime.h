// llama.cpp as a guest in somebody else's process: started once, silent, and with its failures as exceptions.
#pragma once

#include <cstdint>
#include <string>

#include "llama.h"

namespace eliza::llama_cpp {

// Starts ggml and llama.cpp, sends their log to ours (native/base/log.h) and their failed assertions to CallScope.
// Idempotent; call before any other llama.cpp function.
void start_runtime();

// For as long as it lives, on the thread that made it:
//   - llama.cpp's error messages are collected, to say why a call failed that returned nothing but nullptr;
//   - a failed GGML_ASSERT throws std::runtime_error instead of ending the process. So it does in the threads that
//     compute a graph, which throws out of the call that computes it (third_party/llama_cpp/patches, number 11).
class CallScope {
 public:
  CallScope();
  ~CallScope();
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

  // What llama.cpp reported so far, in one line of a bearable length; "no reason given" where it said nothing.
  std::string reason() const;

  // Whether that tells of missing memory.
  bool out_of_memory() const;

  // The same as it came.
  const std::string& errors() const { return errors_; }

  // For the callbacks of llama.cpp.
  void add(const char* text);

 private:
  CallScope* const outer_;
  std::string errors_;
};

// llama_decode. Throws Error where an assertion fails: the model is not what its file says.
int32_t checked_decode(llama_context* context, const llama_batch& batch, const std::string& model_path);

}  // namespace eliza::llama_cpp
