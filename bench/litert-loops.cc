// The two sides that //bench:litert compares, in one process: LiteRT-LM's own streaming loop, and the same work through
// the C ABI of libelizainference, which opens the same library.
//
//   litert-loops LIBRARY BUNDLE MODEL LITERT_LM DECODE_TOKENS
//
// For each line "bare" or "abi" on stdin it runs one round, a prefill and a decode, and prints the seconds of the two
// and how many bytes of text came.
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <mutex>
#include <string>
#include <vector>

#include "bench/library.h"
#include "native/backends/litert_lm/library.h"

namespace {

using eliza::bench::fail;
using Clock = std::chrono::steady_clock;

// A text that the tiny model of the tests has tokens for.
std::string prompt_text() {
  std::string text = "hello";
  for (int i = 0; i < 16; ++i) text += " world the quick brown fox jumps over lazy dog";
  return text;
}

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Round {
  double prefill;
  double decode;
  size_t bytes;
};

// What the documentation of the C API shows: a session, a prefill, a decode whose callback hands text to a waiter.
class Bare {
 public:
  Bare(const char* library, const char* model, int decode_tokens) : decode_tokens_(decode_tokens) {
    std::string why;
    const eliza::litert_lm::Library* const loaded = eliza::litert_lm::open_library(library, &why);
    if (loaded == nullptr) fail(library, why.c_str());
    api_ = &loaded->api;
    LiteRtLmEngineSettings* const settings = api_->engine_settings_create(model, "cpu", nullptr, nullptr);
    api_->engine_settings_set_cache_dir(settings, ":nocache");
    api_->engine_settings_set_num_threads(settings, 1);
    engine_ = api_->engine_create(settings);
    if (engine_ == nullptr) fail("engine_create", api_->get_last_error_message());
  }

  Round run(const std::string& prompt) {
    LiteRtLmSamplerParams* const greedy = api_->sampler_params_create(eliza::litert_lm::kTopP);
    api_->sampler_params_set_top_k(greedy, 1);
    LiteRtLmSessionConfig* const config = api_->session_config_create();
    api_->session_config_set_sampler_params(config, greedy);
    api_->session_config_set_apply_prompt_template(config, false);
    api_->session_config_set_max_output_tokens(config, decode_tokens_);
    Clock::time_point start = Clock::now();
    LiteRtLmSession* const session = api_->engine_create_session(engine_, config);
    const LiteRtLmInputData* const input =
        api_->input_data_create(eliza::litert_lm::kText, prompt.data(), prompt.size());
    if (api_->session_run_prefill(session, &input, 1) != 0) fail("run_prefill", api_->get_last_error_message());
    const double prefill = seconds_since(start);
    start = Clock::now();
    ended_ = false;
    text_.clear();
    if (api_->session_run_decode_async(session, &Bare::on_chunk, this) != 0) fail("run_decode_async", nullptr);
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [this] { return ended_; });
    }
    const double decode = seconds_since(start);
    api_->session_delete(session);
    return {prefill, decode, text_.size()};
  }

 private:
  static void on_chunk(void* self, const LiteRtLmStreamChunk* chunk) {
    auto* const bare = static_cast<Bare*>(self);
    const std::lock_guard<std::mutex> lock(bare->mutex_);
    if (const char* text = bare->api_->stream_chunk_get_text(chunk)) bare->text_ += text;
    bare->ended_ = bare->api_->stream_chunk_is_final(chunk);
    bare->changed_.notify_one();
  }

  const int decode_tokens_;
  const eliza::litert_lm::Api* api_;
  LiteRtLmEngine* engine_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_;
  bool ended_ = false;
};

// The same as a client of ours does it.
class Abi {
 public:
  Abi(const eliza::bench::Library& library, const char* bundle, int decode_tokens, const std::string& prompt)
      : prefill_(ELIZA_BENCH_FUNCTION(library, eliza_inference_llm_stream_prefill)),
        next_(ELIZA_BENCH_FUNCTION(library, eliza_inference_llm_stream_next)),
        reset_(ELIZA_BENCH_FUNCTION(library, eliza_inference_llm_stream_reset)) {
    EliInferenceContext* const context = ELIZA_BENCH_FUNCTION(library, eliza_inference_create)(bundle, &error_);
    if (context == nullptr) fail("create", error_);
    eliza_llm_stream_config_t config = ELIZA_LLM_STREAM_CONFIG_DEFAULT;
    config.max_tokens = decode_tokens;
    stream_ = ELIZA_BENCH_FUNCTION(library, eliza_inference_llm_stream_open)(context, &config, &error_);
    if (stream_ == nullptr) fail("open", error_);
    int* tokens = nullptr;
    size_t count = 0;
    if (ELIZA_BENCH_FUNCTION(library, eliza_inference_tokenize)(context, prompt.data(), prompt.size(), 1, 0, &tokens,
                                                                &count, &error_) != 0) {
      fail("tokenize", error_);
    }
    prompt_.assign(tokens, tokens + count);
  }

  Round run() {
    reset_(stream_);
    Clock::time_point start = Clock::now();
    if (prefill_(stream_, prompt_.data(), prompt_.size(), &error_) != 0) fail("prefill", error_);
    const double prefill = seconds_since(start);
    start = Clock::now();
    size_t bytes = 0;
    for (int status = 0; status == 0;) {
      int32_t tokens[32];
      size_t count = 0;
      char text[1024];
      status = next_(stream_, tokens, 32, &count, text, sizeof text, nullptr, nullptr, &error_);
      if (status < 0) fail("next", error_);
      bytes += std::strlen(text);
    }
    return {prefill, seconds_since(start), bytes};
  }

 private:
  decltype(eliza_inference_llm_stream_prefill)* prefill_;
  decltype(eliza_inference_llm_stream_next)* next_;
  decltype(eliza_inference_llm_stream_reset)* reset_;
  EliLlmStream* stream_ = nullptr;
  std::vector<int32_t> prompt_;
  char* error_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) fail("usage", "litert-loops LIBRARY BUNDLE MODEL LITERT_LM DECODE_TOKENS");
  const int decode_tokens = std::atoi(argv[5]);
  const std::string prompt = prompt_text();
  const eliza::bench::Library library(argv[1]);
  Abi abi(library, argv[2], decode_tokens, prompt);
  Bare bare(argv[4], argv[3], decode_tokens);
  for (std::string side; std::getline(std::cin, side);) {
    if (side != "bare" && side != "abi") fail("no such side", side.c_str());
    const Round round = side == "bare" ? bare.run(prompt) : abi.run();
    std::cout << round.prefill << ' ' << round.decode << ' ' << round.bytes << std::endl;
  }
  return 0;
}
