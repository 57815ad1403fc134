// The two sides that //bench:parity compares: llama.cpp's own bench loop, and the same work through the C ABI of
// libelizainference, which has a copy of llama.cpp of its own from the same build. A side is set up when it is first
// asked for: each in a process of its own, both have the same place in memory (3 % of a prefill have been seen to hang
// on that).
//
//   parity-loops LIBRARY BUNDLE MODEL PROMPT_TOKENS DECODE_TOKENS
//
// For each line "bare" or "abi" on stdin it runs one round, a prefill and a decode, and prints the seconds of the two
// and how many tokens the decode was. ELIZA_THREADS sets the threads of both.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "bench/library.h"
#include "llama.h"

namespace {

using eliza::bench::fail;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Round {
  double prefill;
  double decode;
  int decoded;
};

// What llama-bench does for pp and tg: batches of 512, then single tokens, with no sampling in between.
class Bare {
 public:
  Bare(const char* model_path, int threads, int context_size) {
    llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
    llama_model_params model_params = llama_model_default_params();
    model_params.n_gpu_layers = 0;
    model_ = llama_model_load_from_file(model_path, model_params);
    if (model_ == nullptr) fail("llama_model_load_from_file", model_path);
    llama_context_params params = llama_context_default_params();
    params.n_ctx = static_cast<uint32_t>(context_size);
    params.n_batch = 512;
    params.n_ubatch = 512;
    params.n_threads = threads;
    params.n_threads_batch = threads;
    context_ = llama_init_from_model(model_, params);
    if (context_ == nullptr) fail("llama_init_from_model", model_path);
    ggml_threadpool_params pool = ggml_threadpool_params_default(threads);
    threadpool_ = ggml_threadpool_new(&pool);
    llama_attach_threadpool(context_, threadpool_, nullptr);
  }

  ~Bare() {
    llama_free(context_);
    ggml_threadpool_free(threadpool_);
    llama_model_free(model_);
  }

  Round run(std::vector<int32_t> prompt, int decode_tokens) {
    llama_memory_clear(llama_get_memory(context_), /*data=*/false);
    Clock::time_point start = Clock::now();
    for (size_t done = 0; done < prompt.size(); done += 512) {
      decode(prompt.data() + done, static_cast<int32_t>(std::min<size_t>(512, prompt.size() - done)));
    }
    llama_synchronize(context_);
    const double prefill = seconds_since(start);
    start = Clock::now();
    for (int i = 0; i < decode_tokens; ++i) {
      decode(&prompt[static_cast<size_t>(i) % prompt.size()], 1);
      llama_synchronize(context_);
    }
    return {prefill, seconds_since(start), decode_tokens};
  }

 private:
  void decode(int32_t* tokens, int32_t count) {
    if (llama_decode(context_, llama_batch_get_one(tokens, count)) != 0) fail("llama_decode", nullptr);
  }

  llama_model* model_;
  llama_context* context_;
  ggml_threadpool_t threadpool_;
};

// The same as a client does it.
class Abi {
 public:
  Abi(const eliza::bench::Library& library, const char* bundle, int context_size, int decode_tokens)
      : prefill_(ELIZA_BENCH_FUNCTION(library, eliza_inference_llm_stream_prefill)),
        next_(ELIZA_BENCH_FUNCTION(library, eliza_inference_llm_stream_next)),
        reset_(ELIZA_BENCH_FUNCTION(library, eliza_inference_llm_stream_reset)),
        tokenize_(ELIZA_BENCH_FUNCTION(library, eliza_inference_tokenize)),
        free_tokens_(ELIZA_BENCH_FUNCTION(library, eliza_inference_free_tokens)) {
    context_ = ELIZA_BENCH_FUNCTION(library, eliza_inference_create)(bundle, &error_);
    if (context_ == nullptr) fail("create", error_);
    eliza_llm_stream_config_t config = ELIZA_LLM_STREAM_CONFIG_DEFAULT;
    config.context_size = context_size;
    config.max_tokens = decode_tokens;
    stream_ = ELIZA_BENCH_FUNCTION(library, eliza_inference_llm_stream_open)(context_, &config, &error_);
    if (stream_ == nullptr) fail("open", error_);
    destroy_ = ELIZA_BENCH_FUNCTION(library, eliza_inference_destroy);
  }

  ~Abi() { destroy_(context_); }
  Abi(const Abi&) = delete;
  Abi& operator=(const Abi&) = delete;

  std::vector<int32_t> tokenize(const std::string& text) {
    int* tokens = nullptr;
    size_t count = 0;
    if (tokenize_(context_, text.data(), text.size(), 1, 0, &tokens, &count, &error_) != 0) fail("tokenize", error_);
    std::vector<int32_t> result(tokens, tokens + count);
    free_tokens_(tokens);
    return result;
  }

  Round run(const std::vector<int32_t>& prompt) {
    reset_(stream_);
    Clock::time_point start = Clock::now();
    if (prefill_(stream_, prompt.data(), prompt.size(), &error_) != 0) fail("prefill", error_);
    const double prefill = seconds_since(start);
    start = Clock::now();
    int decoded = 0;
    for (int status = 0; status == 0;) {
      int32_t tokens[32];
      size_t count = 0;
      char text[1024];
      status = next_(stream_, tokens, 32, &count, text, sizeof text, nullptr, nullptr, &error_);
      if (status < 0) fail("next", error_);
      decoded += static_cast<int>(count);
    }
    return {prefill, seconds_since(start), decoded};
  }

 private:
  decltype(eliza_inference_llm_stream_prefill)* prefill_;
  decltype(eliza_inference_llm_stream_next)* next_;
  decltype(eliza_inference_llm_stream_reset)* reset_;
  decltype(eliza_inference_tokenize)* tokenize_;
  decltype(eliza_inference_free_tokens)* free_tokens_;
  decltype(eliza_inference_destroy)* destroy_;
  EliInferenceContext* context_ = nullptr;
  EliLlmStream* stream_ = nullptr;
  char* error_ = nullptr;
};

// A text that goes on and on, so that the model does too.
std::vector<int32_t> make_prompt(Abi&& abi, size_t tokens) {
  std::string text;
  while (abi.tokenize(text).size() < tokens) text += "And then the next day came, and the story went on. ";
  std::vector<int32_t> prompt = abi.tokenize(text);
  prompt.resize(tokens);
  return prompt;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) fail("usage", "parity-loops LIBRARY BUNDLE MODEL PROMPT_TOKENS DECODE_TOKENS");
  const auto prompt_tokens = static_cast<size_t>(std::atoi(argv[4]));
  const int decode_tokens = std::atoi(argv[5]);
  const char* threads = std::getenv("ELIZA_THREADS");
  if (threads == nullptr) fail("ELIZA_THREADS", "is not set");
  const int context_size = static_cast<int>(prompt_tokens) + decode_tokens;

  const eliza::bench::Library library(argv[1]);
  const std::vector<int32_t> prompt = make_prompt(Abi(library, argv[2], context_size, decode_tokens), prompt_tokens);
  std::optional<Abi> abi;
  std::optional<Bare> bare;
  for (std::string side; std::getline(std::cin, side);) {
    if (side != "bare" && side != "abi") fail("no such side", side.c_str());
    if (side == "bare" && !bare) bare.emplace(argv[3], std::atoi(threads), context_size);
    if (side == "abi" && !abi) abi.emplace(library, argv[2], context_size, decode_tokens);
    const Round round = side == "bare" ? bare->run(prompt, decode_tokens) : abi->run(prompt);
    std::cout << round.prefill << ' ' << round.decode << ' ' << round.decoded << std::endl;
  }
  return 0;
}
