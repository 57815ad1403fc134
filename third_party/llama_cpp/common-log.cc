// Takes the place of llama.cpp's common/log.cpp.
//
// Upstream's logger starts a thread at the first message and prints to stdout and stderr. This one
// hands each message to the callback of llama_log_set, in the calling thread, so that all of
// llama.cpp has one way out. It defines only what the parts of common/ that we compile use.

#include <cstdarg>
#include <cstdio>
#include <string>

#include "common/log.h"
#include "llama.h"

namespace {
int g_verbosity = LOG_LEVEL_INFO;
}  // namespace

int common_log_get_verbosity_thold() { return g_verbosity; }

void common_log_set_verbosity_thold(int verbosity) { g_verbosity = verbosity; }

// JSON output is for upstream's programs. Never on, so never added to.
bool common_log_get_jsonl() { return false; }

void common_log_add_json(common_log*, const char*, const common_json&) {}

// There is no logger object: the functions below ignore it.
common_log* common_log_main() { return nullptr; }

void common_log_set_prefix(common_log*, bool) {}

void common_log_set_timestamps(common_log*, bool) {}

// common_init() would make this llama.cpp's callback: a message must not come back to it.
void common_log_default_callback(ggml_log_level, const char*, void*) {}

void common_log_add(common_log*, ggml_log_level level, const char* format, ...) {
  ggml_log_callback callback = nullptr;
  void* user_data = nullptr;
  llama_log_get(&callback, &user_data);
  if (callback == nullptr) return;

  va_list args;
  va_start(args, format);
  va_list args_again;
  va_copy(args_again, args);
  const int length = std::vsnprintf(nullptr, 0, format, args);
  va_end(args);
  if (length > 0) {
    std::string text(static_cast<size_t>(length), '\0');
    std::vsnprintf(text.data(), text.size() + 1, format, args_again);
    callback(level, text.c_str(), user_data);
  }
  va_end(args_again);
}
