#include "tests/faults/walk.h"

#include <dirent.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#include "native/text/utf8-gate.h"

namespace eliza::faults {
namespace {

constexpr char kOlder[] = "what was in the slot file before";

int problem_count = 0;
std::string loop;  // what is being injected, for a problem's report

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  DIR* const stream = opendir(folder.c_str());
  while (const dirent* entry = readdir(stream)) names.insert(entry->d_name);
  closedir(stream);
  return names;
}

size_t open_descriptors() { return names_in("/proc/self/fd").size(); }

// Each call that fails is made again with nothing failing, and then has to succeed as if nothing had been: so each run
// ends with the same text.
class Walk {
 public:
  Walk(const Course& course, Kind kind) : course_(course), kind_(kind), slot_(course.slots + "/slot") {}

  bool failed() const { return failed_; }  // whether any call did

  void run() {
    EliInferenceContext* context = nullptr;
    insist("create", [&](char** error) {
      context = inside([&] { return eliza_inference_create(course_.bundle.c_str(), error); });
      return context != nullptr ? ELIZA_OK : eliza_inference_last_status();
    });
    int* tokens = nullptr;
    size_t count = 0;
    insist("tokenize", [&](char** error) {
      return inside([&] { return tokenize(context, course_.prompt, /*special=*/1, &tokens, &count, error); });
    });
    char* report = nullptr;
    insist("llm_backend_report", [&](char** error) {
      return inside([&] { return eliza_inference_llm_backend_report(context, &report, error); });
    });
    eliza_inference_free_string(report);

    EliLlmStream* stream = nullptr;
    insist("llm_stream_open", [&](char** error) {
      stream = inside([&] { return eliza_inference_llm_stream_open(context, &course_.config, error); });
      return stream != nullptr ? ELIZA_OK : eliza_inference_last_status();
    });
    stream_ = stream;
    insist("llm_stream_prefill", [&](char** error) {
      return inside([&] { return eliza_inference_llm_stream_prefill(stream, tokens, count, error); });
    });
    eliza_inference_free_tokens(tokens);
    expect(generate() == course_.text, "another text");

    std::ofstream(slot_) << kOlder;
    insist("llm_stream_save_slot", [&](char** error) {
      const int status = inside([&] { return eliza_inference_llm_stream_save_slot(stream, slot_.c_str(), error); });
      expect(names_in(course_.slots).size() == 3, "a temporary file was left behind");  // with . and ..
      const std::string now = contents(slot_);
      if (status < 0) expect(now == kOlder, "a save that failed changed the slot file");
      if (status == 0) saved_ = now;
      return status;
    });
    insist("llm_stream_restore_slot", [&](char** error) {
      return inside([&] { return eliza_inference_llm_stream_restore_slot(stream, slot_.c_str(), error); });
    });
    insist("tokenize again", [&](char** error) {
      return inside([&] { return tokenize(context, course_.more, /*special=*/0, &tokens, &count, error); });
    });
    insist("llm_stream_prefill again", [&](char** error) {
      return inside([&] { return eliza_inference_llm_stream_prefill(stream, tokens, count, error); });
    });
    eliza_inference_free_tokens(tokens);
    expect(generate() == course_.more_text, "another text after the restore");
    // What has no out_error has no reason to fail.
    const Inside counted;
    expect(eliza_inference_llm_stream_reset_keep(stream, 2) == 2, "reset_keep failed");
    expect(eliza_inference_llm_stream_reset(stream) == ELIZA_OK, "reset failed");
    eliza_inference_llm_stream_close(stream);
    eliza_inference_destroy(context);
  }

  bool slot_stayed() const { return contents(slot_) == saved_; }

 private:
  static int tokenize(EliInferenceContext* context, const std::string& text, int special, int** tokens, size_t* count,
                      char** error) {
    return eliza_inference_tokenize(context, text.data(), text.size(), special, 0, tokens, count, error);
  }

  std::string state() const {
    char* json = nullptr;
    if (stream_ == nullptr || eliza_inference_llm_stream_stats(stream_, &json, nullptr) < 0) return "";
    const std::string text = json;
    eliza_inference_free_string(json);
    return text;
  }

  // The status of `call`, which gets an out_error, after a second try if need be.
  int insist(const char* what, const std::function<int(char**)>& call) {
    const std::string before = state();
    char* error = nullptr;
    const int status = call(&error);
    if (status >= 0) {
      expect(error == nullptr, "an error message after success");
      return status;
    }
    failed_ = true;
    disarm();
    check_error(what, status, error);
    eliza_inference_free_string(error);
    // A token that next has taken from the backend waits for the next call: the text shows that none is lost.
    const bool may_change = std::strcmp(what, "llm_stream_next") == 0;
    if (!may_change && state() != before) problem(std::string(what) + " changed the stream, and failed: " + state());
    char* second_error = nullptr;
    const int second = call(&second_error);
    if (second < 0) problem(std::string(what) + " failed again: " + (second_error != nullptr ? second_error : "?"));
    eliza_inference_free_string(second_error);
    if (second < 0) std::exit(1);  // nothing to go on with
    return second;
  }

  void check_error(const char* what, int status, const char* error) {
    const bool memory = kind_ == Kind::kAllocate;
    if (kind_ == Kind::kInterrupt || kind_ == Kind::kShortWrite) problem(std::string(what) + " gave up");
    if (memory && status != ELIZA_ERR_OOM) {
      problem(std::string(what) + " took missing memory for " + (error != nullptr ? error : "?"));
    }
    if (error == nullptr) {
      if (!memory) problem(std::string(what) + " failed without a message");
      return;
    }
    const std::string text = error;
    expect(text == to_valid_utf8(text), "a message that is not UTF-8");
    expect(!text.empty(), "an empty message");
  }

  std::string generate() {
    std::string text;
    int status = 0;
    while (status == 0) {
      int32_t tokens[2];
      char piece[8];
      status = insist("llm_stream_next", [&](char** error) {
        size_t count = 99;
        piece[0] = 'x';
        const int result = inside([&] {
          return eliza_inference_llm_stream_next(stream_, tokens, 2, &count, piece, sizeof piece, nullptr, nullptr,
                                                 error);
        });
        if (result < 0) expect(count == 0 && piece[0] == '\0', "outputs left unset by an error");
        return result;
      });
      text += piece;
    }
    return text;
  }

  const Course& course_;
  const Kind kind_;
  const std::string slot_;
  EliLlmStream* stream_ = nullptr;
  std::string saved_;
  bool failed_ = false;
};

}  // namespace

void problem(std::string what) {
  ++problem_count;
  std::replace(what.begin(), what.end(), '"', '\'');
  std::printf("{\"problem\": \"%s: %s\"}\n", loop.c_str(), what.c_str());
  std::fflush(stdout);
}

void expect(bool holds, const char* what) {
  if (!holds) problem(what);
}

int problems() { return problem_count; }

void begin_loop(const std::string& what, Kind kind) { loop = what + ", " + name(kind); }

bool walk(const Course& course, Kind kind, int64_t nth, bool sticky, int64_t* errors) {
  Walk walk(course, kind);
  arm(kind, nth, sticky);
  walk.run();
  const bool fired = disarm();
  if (walk.failed()) ++*errors;
  expect(walk.slot_stayed(), "the slot file changed after its save");
  return fired || walk.failed();
}

void every(const char* what, Kind kind, bool sticky, const Run& run) {
  begin_loop(what, kind);
  loop += sticky ? ", from the Nth" : ", only the Nth";
  int64_t errors = 0;
  run(kind, 1 << 30, false, &errors);  // what is made once, is made now
  int64_t live = live_allocations();
  const size_t descriptors = open_descriptors();
  int64_t nth = 1;
  while (problem_count < 10 && run(kind, nth, sticky, &errors)) {
    const int64_t leaked = std::exchange(live, live_allocations()) - live_allocations();
    if (leaked != 0) problem("leaked memory at N = " + std::to_string(nth));
    if (open_descriptors() != descriptors) problem("leaked a descriptor at N = " + std::to_string(nth));
    if (inheritable_opens() > 0) problem("opened a file without O_CLOEXEC");
    ++nth;
  }
  std::printf("{\"what\": \"%s\", \"kind\": \"%s\", \"sticky\": %s, \"injected\": %lld, \"errors\": %lld}\n", what,
              name(kind), sticky ? "true" : "false", static_cast<long long>(nth - 1), static_cast<long long>(errors));
}

}  // namespace eliza::faults
