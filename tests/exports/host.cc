// A host process that loads the library, uses it and unloads it, and prints as JSON what that did to it:
//
//   host LIBRARY BUNDLE
#include <dlfcn.h>
#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <string>

#include "native/include/eliza-inference-ffi.h"

namespace {

constexpr int kProbes = 1000;
constexpr int kUses = 20;
constexpr int kWarmUp = 50;  // until what the loader and malloc keep for themselves has its size

[[noreturn]] void fail(const char* what, const char* why) {
  std::fprintf(stderr, "%s: %s\n", what, why != nullptr ? why : "no reason given");
  std::exit(1);
}

void* load(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail("dlopen", dlerror());
  return library;
}

template <typename Function>
Function* find(void* library, const char* name) {
  void* const symbol = dlsym(library, name);
  if (symbol == nullptr) fail("dlsym", dlerror());
  return reinterpret_cast<Function*>(symbol);
}
#define FIND(library, name) find<decltype(name)>(library, #name)

// What a desktop client does to find out what a library can.
void probe(const char* path) {
  void* const library = load(path);
  if (FIND(library, eliza_inference_llm_stream_supported)() != 1) fail("llm_stream_supported", "not 1");
  if (FIND(library, eliza_inference_tokenize_supported)() != 1) fail("tokenize_supported", "not 1");
  FIND(library, eliza_inference_vision_supported)();
  dlclose(library);
}

// One short generation, everything closed after it.
void generate(const char* path, const char* bundle) {
  void* const library = load(path);
  char* error = nullptr;
  EliInferenceContext* const context = FIND(library, eliza_inference_create)(bundle, &error);
  if (context == nullptr) fail("create", error);

  int* tokens = nullptr;
  size_t num_tokens = 0;
  if (FIND(library, eliza_inference_tokenize)(context, "abc", 3, 1, 0, &tokens, &num_tokens, &error) != ELIZA_OK) {
    fail("tokenize", error);
  }
  eliza_llm_stream_config_t config = ELIZA_LLM_STREAM_CONFIG_DEFAULT;
  config.max_tokens = 8;
  EliLlmStream* const stream = FIND(library, eliza_inference_llm_stream_open)(context, &config, &error);
  if (stream == nullptr) fail("llm_stream_open", error);
  if (FIND(library, eliza_inference_llm_stream_prefill)(stream, tokens, num_tokens, &error) != ELIZA_OK) {
    fail("llm_stream_prefill", error);
  }
  int status = 0;
  while (status == 0) {
    int32_t token;
    size_t count;
    char text[64];
    status = FIND(library, eliza_inference_llm_stream_next)(stream, &token, 1, &count, text, sizeof text, nullptr,
                                                            nullptr, &error);
  }
  if (status < 0) fail("llm_stream_next", error);
  FIND(library, eliza_inference_llm_stream_close)(stream);
  FIND(library, eliza_inference_free_tokens)(tokens);
  FIND(library, eliza_inference_destroy)(context);
  dlclose(library);
}

int threads() {
  std::ifstream status("/proc/self/status");
  for (std::string key; status >> key;) {
    int value = 0;
    if (key == "Threads:" && status >> value) return value;
  }
  fail("/proc/self/status", "no Threads");
}

bool is_mapped(const std::string& path) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(path) != std::string::npos) return true;
  }
  return false;
}

size_t heap_in_use() { return mallinfo2().uordblks; }

[[noreturn]] void on_terminate() { std::abort(); }

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) fail("usage", "host LIBRARY BUNDLE");
  const char* const path = argv[1];
  const char* const bundle = argv[2];
  std::set_terminate(on_terminate);

  for (int i = 0; i < kWarmUp; ++i) probe(path);
  const size_t heap_before_probes = heap_in_use();
  for (int i = 0; i < kProbes; ++i) probe(path);
  const size_t heap_after_probes = heap_in_use();
  const int threads_after_probes = threads();

  generate(path, bundle);
  const size_t heap_before_use = heap_in_use();
  for (int i = 0; i < kUses; ++i) generate(path, bundle);
  const size_t heap_after_use = heap_in_use();

  std::printf(
      "{\"probe_heap_growth\": %.1f, \"use_heap_growth\": %.1f, \"threads_after_probes\": %d, \"threads_after_use\": "
      "%d, "
      "\"terminate_handler_kept\": %s, \"still_mapped\": %s}\n",
      (double(heap_after_probes) - double(heap_before_probes)) / kProbes,
      (double(heap_after_use) - double(heap_before_use)) / kUses, threads_after_probes, threads(),
      std::get_terminate() == on_terminate ? "true" : "false", is_mapped("libelizainference") ? "true" : "false");
}
