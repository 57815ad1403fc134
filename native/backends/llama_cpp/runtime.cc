#include "native/backends/llama_cpp/runtime.h"

#include <mutex>
#include <stdexcept>

#include "ggml.h"
#include "llama.h"
#include "native/base/log.h"

namespace eliza::llama_cpp {
namespace {

// A plain pointer: a thread_local with a destructor would keep the library loaded after dlclose.
thread_local CallScope* current_scope = nullptr;

void on_log(ggml_log_level level, const char* text, void*) {
  if (level == GGML_LOG_LEVEL_ERROR && current_scope != nullptr) current_scope->add(text);
  if (level != GGML_LOG_LEVEL_DEBUG && log_enabled()) log("llama.cpp", text);
}

void on_abort(const char* message) {
  if (current_scope != nullptr && current_scope->asserts_throw()) throw std::runtime_error(message);
  log("llama.cpp", message);
}

constexpr size_t kMostErrorBytes = 2000;

}  // namespace

void start_runtime() {
  static std::once_flag once;
  std::call_once(once, [] {
    llama_log_set(on_log, nullptr);
    ggml_set_abort_callback(on_abort);
    llama_backend_init();
  });
}

CallScope::CallScope(Asserts asserts) : asserts_(asserts), outer_(current_scope) { current_scope = this; }

CallScope::~CallScope() { current_scope = outer_; }

std::string CallScope::reason() const { return errors_.empty() ? "no reason given" : errors_; }

void CallScope::add(const char* text) {
  // The first lines name the cause, later ones only say that something failed because of it.
  if (errors_.size() > kMostErrorBytes) return;
  std::string line(text);
  while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.pop_back();
  for (char& c : line) {
    if (c == '\n') c = ' ';
  }
  if (line.empty()) return;
  if (!errors_.empty()) errors_ += "; ";
  errors_ += line;
}

}  // namespace eliza::llama_cpp
