// Threads that get into each other's way, on the whole C ABI: over the alphabet (//tests/alphabet), and over each
// runtime with a tiny model.
//
//   races BUNDLE CANCELS CLOSES ROUNDS
//
// Prints what it did as JSON, with the text that a stream says when nothing disturbs it, and that each one has to say
// again; ends with 1 and says why when a promise is broken. Meant to be built with --config=tsan as well.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "native/include/eliza-inference-ffi.h"

#ifdef ELIZA_RACES_ALPHABET
#include "tests/alphabet/alphabet-backend.h"
#endif

namespace {

void require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", promise);
  std::exit(1);
}

// Busy for a random while, so that whatever follows comes at a random point of what another thread does.
void wait_a_little(std::mt19937& random, unsigned most_microseconds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(random() % most_microseconds);
  while (std::chrono::steady_clock::now() < until) {
  }
}

// A number that one thread raises and another waits for, asleep: a machine that is busy has no core for waiting.
class Counter {
 public:
  void set(int value) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      value_ = value;
    }
    changed_.notify_all();
  }
  void wait_for(int least) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return value_ >= least; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int value_ = 0;
};

EliInferenceContext* create(const char* bundle) {
  char* error = nullptr;
  EliInferenceContext* const context = eliza_inference_create(bundle, &error);
  require(context != nullptr, error);
  return context;
}

EliLlmStream* open(EliInferenceContext* context) {
  eliza_llm_stream_config_t config = ELIZA_LLM_STREAM_CONFIG_DEFAULT;
  config.context_size = 256;
  char* error = nullptr;
  EliLlmStream* const stream = eliza_inference_llm_stream_open(context, &config, &error);
  require(stream != nullptr, error);
  return stream;
}

std::vector<int32_t> tokens_of(EliInferenceContext* context, const std::string& text) {
  int* tokens = nullptr;
  size_t count = 0;
  require(eliza_inference_tokenize(context, text.data(), text.size(), 0, 0, &tokens, &count, nullptr) == ELIZA_OK,
          "tokenize");
  std::vector<int32_t> copy(tokens, tokens + count);
  eliza_inference_free_tokens(tokens);
  return copy;
}

int prefill(EliLlmStream* stream, const std::vector<int32_t>& tokens) {
  return eliza_inference_llm_stream_prefill(stream, tokens.data(), tokens.size(), nullptr);
}

// One next, of at most `most` tokens; appends its text, and adds to `count`.
int next(EliLlmStream* stream, std::string* text, size_t most = 4, size_t* count = nullptr) {
  int32_t tokens[4];
  size_t taken = 0;
  char piece[64];
  const int status =
      eliza_inference_llm_stream_next(stream, tokens, most, &taken, piece, sizeof piece, nullptr, nullptr, nullptr);
  if (status >= 0) *text += piece;
  if (count != nullptr) *count += taken;
  return status;
}

constexpr char kPrompt[] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefg";
constexpr size_t kAnswerTokens = 6;

// What every stream is asked, and what it says, by one that nothing disturbs.
struct Exchange {
  std::vector<int32_t> prompt;
  std::string answer;
};

// The answer of a new stream, or of one that was reset.
std::string answer(EliLlmStream* stream, const std::vector<int32_t>& prompt) {
  require(prefill(stream, prompt) == ELIZA_OK, "a prefill");
  std::string text;
  int status = 0;
  for (size_t count = 0; count < kAnswerTokens && status == 0;) {
    status = next(stream, &text, std::min<size_t>(kAnswerTokens - count, 4), &count);
    require(status >= 0, "a next");
  }
  return text;
}

Exchange undisturbed(EliInferenceContext* context) {
  Exchange exchange;
  exchange.prompt = tokens_of(context, kPrompt);
  EliLlmStream* const stream = open(context);
  exchange.answer = answer(stream, exchange.prompt);
  eliza_inference_llm_stream_close(stream);
  require(!exchange.answer.empty(), "the model says something");
  return exchange;
}

// A kind of meeting that is rare on a machine gets more rounds than were asked for, up to so many times as many.
constexpr int kMostTimes = 50;

// What a cancel met, by round. Odd rounds aim at the prefill, even ones at the tokens after it.
struct Cancels {
  Counter prefilled;                 // rounds whose prefill has ended
  Counter asked;                     // rounds in which the cancel has returned
  Counter ready;                     // rounds after which the stream was found to be as new
  std::atomic<unsigned> usual{100};  // microseconds that a prefill and some tokens take when nobody cancels
  int rounds = 0;                    // in which there was a cancel
  std::atomic<int> in_prefill{0};
  std::atomic<int> in_next{0};

  // Whether there is another round. Both threads ask it after the same rounds, when `ready` says that all is counted.
  bool go_on(int round, int wanted) const {
    return round <= wanted || ((in_prefill == 0 || in_next == 0) && round <= kMostTimes * wanted);
  }
};

// Each round until the cancel: the call in flight, or the next one, is cancelled, and after a reset the stream is as
// new.
void be_cancelled(EliLlmStream* stream, const Exchange& exchange, int rounds, Cancels* cancels) {
  for (int round = 1; cancels->go_on(round, rounds); ++round) {
    std::string text;
    int status = prefill(stream, exchange.prompt);
    cancels->prefilled.set(round);
    std::atomic<int>& met = status < 0 ? cancels->in_prefill : cancels->in_next;
    while (status >= 0) status = next(stream, &text);
    require(status == ELIZA_ERR_CANCELLED, "nothing fails but by the cancel");
    ++met;
    cancels->asked.wait_for(round);
    require(next(stream, &text) == ELIZA_ERR_CANCELLED, "a cancel stays until the reset");
    require(eliza_inference_llm_stream_reset(stream) == ELIZA_OK, "a reset after a cancel");

    const auto start = std::chrono::steady_clock::now();
    const std::string again = answer(stream, exchange.prompt);
    const auto took = std::chrono::steady_clock::now() - start;
    const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(took).count();
    cancels->usual = static_cast<unsigned>(std::max<int64_t>(microseconds, 1));
    require(again == exchange.answer, "the text after a cancel and a reset");
    require(eliza_inference_llm_stream_reset(stream) == ELIZA_OK, "a reset");
    cancels->ready.set(round);
  }
}

void cancel(EliInferenceContext* context, const Exchange& exchange, int rounds, Cancels* cancels) {
  EliLlmStream* const stream = open(context);
  std::thread worker(be_cancelled, stream, std::cref(exchange), rounds, cancels);
  std::mt19937 random(1);
  for (int round = 1;; ++round) {
    cancels->ready.wait_for(round - 1);
    if (!cancels->go_on(round, rounds)) break;
    // However slow the machine is: a wait from the round's start alone would never reach the tokens where prefills
    // are long.
    if (round % 2 == 0) cancels->prefilled.wait_for(round);
    wait_a_little(random, cancels->usual);
    require(eliza_inference_llm_stream_cancel(stream) == ELIZA_OK, "a cancel");
    ++cancels->rounds;
    cancels->asked.set(round);
  }
  worker.join();
  eliza_inference_llm_stream_close(stream);
}

struct Closes {
  int rounds = 0;
  int in_flight = 0;  // that met a call
};

// A close while another thread is in a call: that one is cancelled, or comes too late.
Closes close(EliInferenceContext* context, const Exchange& exchange, int rounds, unsigned usual) {
  std::mt19937 random(2);
  Closes closes;
  for (; closes.rounds < rounds || (closes.in_flight == 0 && closes.rounds < kMostTimes * rounds); ++closes.rounds) {
    EliLlmStream* const stream = open(context);
    std::atomic<int> last{0};
    Counter in_use;
    std::thread user([&] {
      std::string text;
      int status = 0;
      while (status >= 0) {
        status = status == 1 ? eliza_inference_llm_stream_reset(stream) : prefill(stream, exchange.prompt);
        in_use.set(1);
        for (int i = 0; i < 8 && status == 0; ++i) status = next(stream, &text);
        if (status == 0) status = eliza_inference_llm_stream_reset(stream);
      }
      last = status;
    });
    in_use.wait_for(1);
    wait_a_little(random, 4 * usual);
    eliza_inference_llm_stream_close(stream);
    user.join();
    require(last == ELIZA_ERR_CANCELLED || last == ELIZA_ERR_INVALID_ARG, "a call that meets a close");
    closes.in_flight += last == ELIZA_ERR_CANCELLED ? 1 : 0;
  }
  return closes;
}

// Two contexts with four streams each, a thread for each stream; the contexts end while the streams are used.
void crowd(const char* bundle, const Exchange& exchange, int rounds) {
  std::mt19937 random(3);
  for (int round = 0; round < rounds; ++round) {
    EliInferenceContext* const contexts[] = {create(bundle), create(bundle)};
    std::vector<EliLlmStream*> streams;
    for (EliInferenceContext* context : contexts) {
      for (int i = 0; i < 4; ++i) streams.push_back(open(context));
    }
    std::atomic<int> right{0};
    Counter all_right;
    std::vector<std::thread> users;
    for (EliLlmStream* stream : streams) {
      users.emplace_back([&, stream] {
        require(answer(stream, exchange.prompt) == exchange.answer, "its own text for each of eight");
        if (++right == 8) all_right.set(1);
        std::string text;
        while (next(stream, &text) >= 0) text.clear();  // until its context ends
      });
    }
    all_right.wait_for(1);
    wait_a_little(random, 500);
    for (EliInferenceContext* context : contexts) eliza_inference_destroy(context);
    for (std::thread& user : users) user.join();
  }
}

// Whether everything that was opened has been closed, and its model freed with it.
bool nothing_is_left(const char* bundle) {
  EliInferenceContext* const context = create(bundle);
  char* report = nullptr;
  require(eliza_inference_llm_backend_report(context, &report, nullptr) == ELIZA_OK, "a report");
  const bool nothing = std::string(report).find(R"("live":{"contexts":1,"streams":0,"models":0})") != std::string::npos;
  eliza_inference_free_string(report);
  eliza_inference_destroy(context);
  return nothing;
}

// Quoted for JSON; `text` is UTF-8.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    char escape[8];
    std::snprintf(escape, sizeof escape, "\\u%04x", c);
    const bool plain = static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
    result += plain ? std::string(1, c) : escape;
  }
  return result + "\"";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return std::fprintf(stderr, "races BUNDLE CANCELS CLOSES ROUNDS\n"), 2;
#ifdef ELIZA_RACES_ALPHABET
  eliza_test_alphabet_backend();
#endif
  EliInferenceContext* const context = create(argv[1]);
  const Exchange exchange = undisturbed(context);
  Cancels cancels;
  cancel(context, exchange, std::atoi(argv[2]), &cancels);
  const Closes closes = close(context, exchange, std::atoi(argv[3]), cancels.usual);
  eliza_inference_destroy(context);
  crowd(argv[1], exchange, std::atoi(argv[4]));
  require(nothing_is_left(argv[1]), "no context, stream or model is left");
#ifdef ELIZA_RACES_ALPHABET
  require(eliza_test_alphabet_sessions() == 0, "no session is left");
#endif
  std::printf(
      "{\"answer\": %s, \"cancels\": %d, \"in_prefill\": %d, \"in_next\": %d, \"closes\": %d, "
      "\"closes_in_a_call\": %d}\n",
      quoted(exchange.answer).c_str(), cancels.rounds, cancels.in_prefill.load(), cancels.in_next.load(), closes.rounds,
      closes.in_flight);
}
