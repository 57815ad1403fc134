// seam-loop LIBRARY BUNDLE CALLS: nanoseconds per eliza_inference_llm_stream_next on the fake backend of
// //tests/ffi:elizainference_fake, which does nothing: what is timed is the way there and back. Prints the median of
// 20 rounds.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "bench/library.h"

using eliza::bench::fail;

int main(int argc, char** argv) {
  if (argc != 4) fail("usage", "seam-loop LIBRARY BUNDLE CALLS");
  const eliza::bench::Library library(argv[1]);
  const int calls = std::atoi(argv[3]);

  // Registers the fake, without hooks: tests/ffi/fake-backend.h.
  using Register = void(const void* hooks);
  library.find("eliza_test_fake_backend", static_cast<Register*>(nullptr))(nullptr);

  char* error = nullptr;
  EliInferenceContext* context = ELIZA_BENCH_FUNCTION(library, eliza_inference_create)(argv[2], &error);
  if (context == nullptr) fail("create", error);
  const eliza_llm_stream_config_t config = ELIZA_LLM_STREAM_CONFIG_DEFAULT;
  EliLlmStream* stream = ELIZA_BENCH_FUNCTION(library, eliza_inference_llm_stream_open)(context, &config, &error);
  if (stream == nullptr) fail("open", error);
  const int32_t prompt = 'a';
  if (ELIZA_BENCH_FUNCTION(library, eliza_inference_llm_stream_prefill)(stream, &prompt, 1, &error) != 0) {
    fail("prefill", error);
  }

  const auto next = ELIZA_BENCH_FUNCTION(library, eliza_inference_llm_stream_next);
  std::vector<double> rounds;
  for (int round = 0; round < 20; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) {
      int32_t tokens[32];
      size_t count;
      char text[1024];
      int32_t drafted, accepted;
      if (next(stream, tokens, 32, &count, text, sizeof text, &drafted, &accepted, &error) != 0) fail("next", error);
    }
    const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
    rounds.push_back(elapsed.count() / calls);
  }
  std::sort(rounds.begin(), rounds.end());
  std::printf("%.1f\n", rounds[rounds.size() / 2]);

  ELIZA_BENCH_FUNCTION(library, eliza_inference_llm_stream_close)(stream);
  ELIZA_BENCH_FUNCTION(library, eliza_inference_destroy)(context);
  return 0;
}
