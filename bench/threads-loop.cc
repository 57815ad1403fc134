// Decode speed of N contexts on N threads, on the C ABI alone: what //bench:threads compares Python's with.
//
//   threads-loop LIBRARY BUNDLE DECODE
//
// Reads numbers of threads from stdin, one a line, and answers each with the tokens per second of all of them together.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "bench/library.h"

namespace {

using eliza::bench::fail;
using eliza::bench::Library;
using Clock = std::chrono::steady_clock;

struct Functions {
  decltype(&eliza_inference_llm_stream_open) open;
  decltype(&eliza_inference_llm_stream_prefill) prefill;
  decltype(&eliza_inference_llm_stream_next) next;
  decltype(&eliza_inference_llm_stream_close) close;
};

// Opens a stream, generates `count` tokens after the token 1, and closes it.
void decode(const Functions& functions, EliInferenceContext* context, int count) {
  eliza_llm_stream_config_t config = ELIZA_LLM_STREAM_CONFIG_DEFAULT;
  config.max_tokens = count;
  char* error = nullptr;
  EliLlmStream* stream = functions.open(context, &config, &error);
  if (stream == nullptr) fail("open", error);
  const int32_t prompt[] = {1};
  if (functions.prefill(stream, prompt, 1, &error) != 0) fail("prefill", error);
  int32_t tokens[64];
  char text[4096];
  for (int status = 0; status == 0;) {
    size_t got = 0;
    int32_t drafted = 0, accepted = 0;
    status = functions.next(stream, tokens, 64, &got, text, sizeof text, &drafted, &accepted, &error);
    if (status < 0) fail("next", error);
  }
  functions.close(stream);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) fail("usage", "threads-loop LIBRARY BUNDLE DECODE");
  const Library library(argv[1]);
  const Functions functions = {ELIZA_BENCH_FUNCTION(library, eliza_inference_llm_stream_open),
                               ELIZA_BENCH_FUNCTION(library, eliza_inference_llm_stream_prefill),
                               ELIZA_BENCH_FUNCTION(library, eliza_inference_llm_stream_next),
                               ELIZA_BENCH_FUNCTION(library, eliza_inference_llm_stream_close)};
  const auto create = ELIZA_BENCH_FUNCTION(library, eliza_inference_create);
  const int count = std::atoi(argv[3]);
  std::vector<EliInferenceContext*> contexts;
  int wanted = 0;
  while (std::scanf("%d", &wanted) == 1) {
    char* error = nullptr;
    while (static_cast<int>(contexts.size()) < wanted) {
      EliInferenceContext* context = create(argv[2], &error);
      if (context == nullptr) fail("create", error);
      contexts.push_back(context);
    }
    const Clock::time_point start = Clock::now();
    std::vector<std::thread> threads;
    for (int i = 0; i < wanted; ++i) {
      threads.emplace_back([&, i] { decode(functions, contexts[i], count); });
    }
    for (std::thread& thread : threads) thread.join();
    std::printf("%f\n", wanted * count / std::chrono::duration<double>(Clock::now() - start).count());
    std::fflush(stdout);
  }
  return 0;
}
