// The figures of a device, on the C ABI alone: one program without dependencies, for a phone as well as for a server.
//
//   native LIBRARY BUNDLE [--prompt N] [--decode N] [--draft FILE] [--draft-max N] [--gpu-layers N]
//
// Prints one JSON object in the form of the other benches: prefill, decode, time to first token, resident memory, and
// with a drafter its acceptance. ELIZA_THREADS and ELIZA_LLM_BACKEND apply. On Android: docs/performance.md.
#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "bench/library.h"

namespace {

using eliza::bench::fail;
using eliza::bench::Library;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Options {
  int prompt = 512;
  int decode = 128;
  int draft_max = 4;
  int gpu_layers = 0;
  const char* draft = nullptr;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 3; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const char* value = argv[i + 1];
    if (name == "--draft") {
      options.draft = value;
    } else if (int* number = name == "--prompt"       ? &options.prompt
                             : name == "--decode"     ? &options.decode
                             : name == "--draft-max"  ? &options.draft_max
                             : name == "--gpu-layers" ? &options.gpu_layers
                                                      : nullptr) {
      *number = std::atoi(value);
    } else {
      fail(argv[i], "unknown option");
    }
  }
  if (argc % 2 == 0) fail(argv[argc - 1], "an option without a value");
  return options;
}

// The most this process has had resident, in MiB.
double peak_resident() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
#if defined(__APPLE__)
  return static_cast<double>(usage.ru_maxrss) / (1 << 20);  // bytes
#else
  return static_cast<double>(usage.ru_maxrss) / 1024;  // KiB
#endif
}

class Metrics {
 public:
  void add(const char* label, double value, const char* unit, const char* better) {
    char text[256];
    std::snprintf(text, sizeof text,
                  "%s\"%s\": {\"value\": %.6g, \"unit\": \"%s\", \"limit\": null, \"better\": \"%s\"}",
                  json_.empty() ? "" : ", ", label, value, unit, better);
    json_ += text;
  }
  void print() const { std::printf("{\"bench\": \"native\", \"metrics\": {%s}}\n", json_.c_str()); }

 private:
  std::string json_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3)
    fail("usage", "native LIBRARY BUNDLE [--prompt N] [--decode N] [--draft FILE] [--draft-max N] [--gpu-layers N]");
  const Options options = parse(argc, argv);
  const Library library(argv[1]);
  const auto create = ELIZA_BENCH_FUNCTION(library, eliza_inference_create);
  const auto destroy = ELIZA_BENCH_FUNCTION(library, eliza_inference_destroy);
  const auto tokenize = ELIZA_BENCH_FUNCTION(library, eliza_inference_tokenize);
  const auto open = ELIZA_BENCH_FUNCTION(library, eliza_inference_llm_stream_open);
  const auto prefill = ELIZA_BENCH_FUNCTION(library, eliza_inference_llm_stream_prefill);
  const auto next = ELIZA_BENCH_FUNCTION(library, eliza_inference_llm_stream_next);
  const auto close = ELIZA_BENCH_FUNCTION(library, eliza_inference_llm_stream_close);

  char* error = nullptr;
  EliInferenceContext* context = create(argv[2], &error);
  if (context == nullptr) fail("create", error);
  const std::string sentence = "And then the next day came, and the story went on. ";
  std::string text;
  while (static_cast<int>(text.size()) < 8 * options.prompt) text += sentence;
  int* ids = nullptr;
  size_t count = 0;
  if (tokenize(context, text.data(), text.size(), 1, 0, &ids, &count, &error) != 0) fail("tokenize", error);
  if (static_cast<int>(count) < options.prompt) fail("--prompt", "is too long");
  const std::vector<int32_t> prompt(ids, ids + options.prompt);

  eliza_llm_stream_config_t config = ELIZA_LLM_STREAM_CONFIG_DEFAULT;
  config.max_tokens = options.decode;
  config.n_gpu_layers = options.gpu_layers;
#if ELIZA_INFERENCE_ABI_VERSION >= 15
  config.context_size = options.prompt + options.decode + 64;
#endif
  if (options.draft != nullptr) {
    config.mtp_drafter_path = options.draft;
    config.draft_max = options.draft_max;
  }
  Clock::time_point start = Clock::now();
  EliLlmStream* stream = open(context, &config, &error);
  if (stream == nullptr) fail("open", error);
  Metrics metrics;
  metrics.add("open", seconds_since(start) * 1000, "ms", "lower");

  start = Clock::now();
  if (prefill(stream, prompt.data(), prompt.size(), &error) != 0) fail("prefill", error);
  metrics.add("prefill", options.prompt / seconds_since(start), "tokens/s", "higher");

  std::vector<int32_t> tokens(64);
  std::vector<char> piece(4096);
  int decoded = 0, drafted = 0, accepted = 0;
  Clock::time_point decode_start;
  for (int status = 0; status == 0;) {
    size_t got = 0;
    int32_t step_drafted = 0, step_accepted = 0;
    status = next(stream, tokens.data(), tokens.size(), &got, piece.data(), piece.size(), &step_drafted, &step_accepted,
                  &error);
    if (status < 0) fail("next", error);
    if (decoded == 0) {
      metrics.add("time to first token", seconds_since(start) * 1000, "ms", "lower");
      decode_start = Clock::now();
      decoded = 1;
      continue;
    }
    decoded += static_cast<int>(got);
    drafted += step_drafted;
    accepted += step_accepted;
  }
  metrics.add("decode", (decoded - 1) / seconds_since(decode_start), "tokens/s", "higher");
  metrics.add("resident memory, peak", peak_resident(), "MiB", "lower");
  if (options.draft != nullptr) {
    metrics.add("accepted", drafted == 0 ? 0 : static_cast<double>(accepted) / drafted, "of drafted", "higher");
  }
  metrics.print();
  close(stream);
  destroy(context);
  return 0;
}
