// The promise of faults.cc for the LiteRT-LM backend: every allocation of ours fails once, and from then on for ever,
// on the caller's thread and on the runtime's. The runtime is one that only looks like it, and never runs out of
// memory.
//
//   litert_lm libfake.so MODEL.litertlm
//
// Prints a line of JSON for each loop and each problem; ends with 1 after a problem.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "native/backends/litert_lm/engine.h"
#include "native/backends/litert_lm/library.h"
#include "native/backends/litert_lm/session.h"
#include "native/backends/litert_lm/tokenizer.h"
#include "native/include/eliza-inference-ffi.h"
#include "tests/faults/injector.h"

namespace eliza::faults {
namespace {

using litert_lm::Api;
using litert_lm::Engine;

constexpr int32_t kMaxTokens = 8;
constexpr std::chrono::seconds kLimit{600};  // nothing is to wait that long

int problems = 0;

void problem(const std::string& what) {
  ++problems;
  std::printf("{\"problem\": \"%s\"}\n", what.c_str());
  std::fflush(stdout);
}

void expect(bool holds, const std::string& what) {
  if (!holds) problem(what);
}

Api runtime;  // as it is

template <auto Function>
struct Harmless;
template <typename Result, typename... Arguments, Result (*Api::*Function)(Arguments...)>
struct Harmless<Function> {
  static Result call(Arguments... arguments) {
    const Outside not_ours;
    return (runtime.*Function)(arguments...);
  }
};

litert_lm::Library open_runtime(const char* path) {
  std::string why;
  const litert_lm::Library* const opened = litert_lm::open_library(path, &why);
  if (opened == nullptr) {
    problem(why);
    std::exit(1);
  }
  litert_lm::Library library = *opened;
  runtime = library.api;
#define WRAP(result, name, arguments) \
  if (runtime.name != nullptr) library.api.name = &Harmless<&Api::name>::call;
  ELIZA_LITERT_LM_REQUIRED(WRAP)
  ELIZA_LITERT_LM_OPTIONAL(WRAP)
#undef WRAP
  return library;
}

// One walk through a model's life. What fails is done again with nothing failing, and then has to succeed.
class Walk {
 public:
  bool failed() const { return failed_; }  // whether anything did

  void run(const litert_lm::Library& library, const litert_lm::EngineSettings& settings) {
    const std::shared_ptr<const Engine> engine =
        insist("load", [&] { return litert_lm::acquire_engine(library, settings, kLimit); });
    const std::vector<int32_t> tokens = insist("tokenize", [&] {
      return litert_lm::LiteRtTokenizer(engine).tokenize("abc", /*add_special=*/true, /*parse_special=*/false);
    });
    eliza_llm_stream_config_t config = ELIZA_LLM_STREAM_CONFIG_DEFAULT;
    config.max_tokens = kMaxTokens;
    const std::unique_ptr<LlmBackendSession> session =
        insist("open", [&] { return std::make_unique<litert_lm::Session>(engine, config); });

    prefill(*session, tokens);
    generate(*session);
    prefill(*session, {'d'});
    generate(*session);
    const int kept = inside([&] { return session->reset_keep(3); });
    expect(kept == 3 || kept == 0, "reset_keep");
    prefill(*session, kept == 0 ? tokens : std::vector<int32_t>{'e'});
    session->cancel();
    expect(session->prefill(tokens.data(), tokens.size(), nullptr) == ELIZA_ERR_CANCELLED, "no cancel");
    inside([&] { return session->reset(); });
    prefill(*session, tokens);
    generate(*session);
  }

 private:
  template <typename Call>
  auto insist(const char* what, Call&& call) -> decltype(call()) {
    try {
      return inside(call);
    } catch (const std::bad_alloc&) {
    } catch (const std::exception& error) {
      problem(std::string(what) + " took missing memory for " + error.what());
    }
    failed_ = true;
    disarm();
    return call();
  }

  // The same for a call that returns a status.
  int insist_status(const char* what, const std::function<int()>& call) {
    const int status = inside(call);
    if (status >= 0) return status;
    failed_ = true;
    disarm();
    expect(status == ELIZA_ERR_OOM, std::string(what) + " failed with " + std::to_string(status));
    const int second = call();
    expect(second >= 0, std::string(what) + " failed again with " + std::to_string(second));
    return second;
  }

  void prefill(LlmBackendSession& session, const std::vector<int32_t>& tokens) {
    insist_status("prefill", [&] { return session.prefill(tokens.data(), tokens.size(), nullptr); });
  }

  void generate(LlmBackendSession& session) {
    int64_t generated = 0;
    for (int status = 0; status == 0;) {
      status = insist_status("next", [&] {
        int32_t tokens[4];
        char text[16];
        size_t count = 0;
        const int result = session.next(tokens, 4, &count, text, sizeof text, nullptr, nullptr, nullptr);
        if (result >= 0) generated += static_cast<int64_t>(count);  // of an error, a caller takes nothing
        return result;
      });
      if (status < 0) return;
    }
    expect(generated == kMaxTokens, "generated " + std::to_string(generated) + " tokens");
  }

  bool failed_ = false;
};

// Every N, with nothing leaked by any.
void every(bool sticky, const litert_lm::Library& library, const litert_lm::EngineSettings& settings) {
  int64_t errors = 0;
  const auto run = [&](int64_t nth) {
    Walk walk;
    arm(Kind::kAllocate, nth, sticky);
    walk.run(library, settings);
    const bool fired = disarm();
    if (walk.failed()) ++errors;
    return fired || walk.failed();
  };
  run(1 << 30);  // what is made once, is made now
  const int64_t live = live_allocations();
  int64_t nth = 1;
  for (; problems < 10 && run(nth); ++nth) {
    if (live_allocations() != live) problem("leaked memory at N = " + std::to_string(nth));
  }
  std::printf("{\"sticky\": %s, \"injected\": %lld, \"errors\": %lld}\n", sticky ? "true" : "false",
              static_cast<long long>(nth - 1), static_cast<long long>(errors));
}

}  // namespace
}  // namespace eliza::faults

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "litert_lm libfake.so MODEL.litertlm\n");
    return 2;
  }
  const eliza::litert_lm::Library library = eliza::faults::open_runtime(argv[1]);
  eliza::litert_lm::EngineSettings settings;
  settings.model_path = argv[2];
  settings.rung.device = "cpu";
  for (const bool sticky : {false, true}) eliza::faults::every(sticky, library, settings);
  return eliza::faults::problems > 0;
}
