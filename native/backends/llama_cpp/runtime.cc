#include "native/backends/llama_cpp/runtime.h"

#include <mutex>
#include <stdexcept>

#include "ggml.h"
#include "native/base/error.h"
#include "native/base/log.h"
#include "native/text/quote.h"

extern "C" bool ggml_cpu_is_computing(void);  // third_party/llama_cpp/patches, number 11

namespace eliza::llama_cpp {
namespace {

// A plain pointer: a thread_local with a destructor would keep the library loaded after dlclose.
thread_local CallScope* current_scope = nullptr;

void on_log(ggml_log_level level, const char* text, void*) {
  if (level == GGML_LOG_LEVEL_ERROR && current_scope != nullptr) current_scope->add(text);
  if (level != GGML_LOG_LEVEL_DEBUG && log_enabled()) log("llama.cpp", text);
}

// Throws where somebody catches it: below a call of ours, and in every thread that computes a graph.
void on_abort(const char* message) {
  if (current_scope != nullptr || ggml_cpu_is_computing()) throw std::runtime_error(message);
  log("llama.cpp", message);
}

// The first lines name the cause, later ones only say that something failed because of it.
constexpr size_t kMostReasonBytes = 1000;
constexpr size_t kMostErrorBytes = size_t{1} << 20;

}  // namespace

void start_runtime() {
  static std::once_flag once;
  std::call_once(once, [] {
    llama_log_set(on_log, nullptr);
    ggml_set_abort_callback(on_abort);
    llama_backend_init();
  });
}

CallScope::CallScope() : outer_(current_scope) { current_scope = this; }

CallScope::~CallScope() { current_scope = outer_; }

std::string CallScope::reason() const {
  std::string line;
  for (const char c : errors_) {
    if (line.size() > kMostReasonBytes) break;
    if (c != '\n')
      line += c;
    else if (!line.empty() && line.back() != ' ')
      line += "; ";
  }
  while (!line.empty() && (line.back() == ' ' || line.back() == ';')) line.pop_back();
  return line.empty() ? "no reason given" : shown(line, kMostReasonBytes);
}

bool CallScope::out_of_memory() const {
  // "failed to allocate …", "std::bad_alloc", and of a file that is mapped the system's reason, which some systems call
  // "Out of memory". Not "alloc", which may be in the name of a file or a tensor.
  const auto says = [&](const char* words) { return errors_.find(words) != std::string::npos; };
  return says(" to allocate ") || says("bad_alloc") || says("Cannot allocate memory") || says("ut of memory");
}

int32_t checked_decode(llama_context* context, const llama_batch& batch, const std::string& model_path) {
  try {
    return llama_decode(context, batch);
  } catch (const std::runtime_error& assertion) {
    throw Error(ELIZA_ERR_FFI_FAULT, "llama.cpp cannot run the model " + model_path + " (" +
                                         shown(assertion.what(), kMostReasonBytes) +
                                         "). Take one that llama.cpp supports");
  }
}

void CallScope::add(const char* text) {
  if (errors_.size() < kMostErrorBytes) errors_ += text;
}

}  // namespace eliza::llama_cpp
