// SQLite's promise: every allocation, and everything asked of the file system, is made to fail once, and from then on
// for ever, in a loop over a whole session; each time the library returns an error and loses nothing.
//
//   faults FOLDER MODEL...
//
// FOLDER is an empty one to work in; a MODEL is a file whose check has the same promise to keep. Prints a line of JSON
// for each loop and each problem; ends with 1 after a problem.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "native/backends/litert_lm/model-header.h"
#include "native/backends/llama_cpp/gguf-check.h"
#include "native/backends/mlx/safetensors-check.h"
#include "native/base/error.h"
#include "native/base/strings.h"
#include "native/include/eliza-inference-ffi.h"
#include "native/text/utf8-gate.h"
#include "tests/alphabet/alphabet-backend.h"
#include "tests/faults/injector.h"

namespace eliza::faults {
namespace {

constexpr char kOlder[] = "what was in the slot file before";

int problems = 0;
std::string loop;  // what is being injected, for a problem's report

void problem(std::string what) {
  ++problems;
  std::replace(what.begin(), what.end(), '"', '\'');
  std::printf("{\"problem\": \"%s: %s\"}\n", loop.c_str(), what.c_str());
  std::fflush(stdout);
}

void expect(bool holds, const char* what) {
  if (!holds) problem(what);
}

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

// One walk through the ABI. Each call that fails is made again with nothing failing, and then has to succeed as if
// nothing had been: so each run ends with the same text.
class Session {
 public:
  Session(const std::string& folder, Kind kind) : bundle_(folder + "/bundle"), slots_(folder + "/slots"), kind_(kind) {}

  bool failed() const { return failed_; }  // whether any call did

  void run() {
    const std::string slot = slots_ + "/slot";
    EliInferenceContext* context = nullptr;
    insist("create", [&](char** error) {
      context = inside([&] { return eliza_inference_create(bundle_.c_str(), error); });
      return context != nullptr ? ELIZA_OK : eliza_inference_last_status();
    });
    int* tokens = nullptr;
    size_t count = 0;
    insist("tokenize", [&](char** error) {
      return inside([&] { return eliza_inference_tokenize(context, "wxy", 3, 1, 0, &tokens, &count, error); });
    });
    char* report = nullptr;
    insist("llm_backend_report", [&](char** error) {
      return inside([&] { return eliza_inference_llm_backend_report(context, &report, error); });
    });
    eliza_inference_free_string(report);

    eliza_llm_stream_config_t config = ELIZA_LLM_STREAM_CONFIG_DEFAULT;
    config.max_tokens = 8;
    EliLlmStream* stream = nullptr;
    insist("llm_stream_open", [&](char** error) {
      stream = inside([&] { return eliza_inference_llm_stream_open(context, &config, error); });
      return stream != nullptr ? ELIZA_OK : eliza_inference_last_status();
    });
    stream_ = stream;
    insist("llm_stream_prefill", [&](char** error) {
      return inside([&] { return eliza_inference_llm_stream_prefill(stream, tokens, count, error); });
    });
    eliza_inference_free_tokens(tokens);
    expect(generate() ==
               "z\xC3\xA9"
               "abcde",
           "another text");

    std::ofstream(slot) << kOlder;
    insist("llm_stream_save_slot", [&](char** error) {
      const int status = inside([&] { return eliza_inference_llm_stream_save_slot(stream, slot.c_str(), error); });
      expect(names_in(slots_).size() == 3, "a temporary file was left behind");  // with . and ..
      const std::string now = contents(slot);
      if (status < 0) expect(now == kOlder, "a save that failed changed the slot file");
      if (status == 0) saved_ = now;
      return status;
    });
    insist("llm_stream_restore_slot", [&](char** error) {
      return inside([&] { return eliza_inference_llm_stream_restore_slot(stream, slot.c_str(), error); });
    });
    const int32_t more[] = {'b'};
    insist("llm_stream_prefill again", [&](char** error) {
      return inside([&] { return eliza_inference_llm_stream_prefill(stream, more, 1, error); });
    });
    expect(generate() == "cdefghij", "another text after the restore");
    // What has no out_error has no reason to fail.
    const Inside counted;
    expect(eliza_inference_llm_stream_reset_keep(stream, 2) == 2, "reset_keep failed");
    expect(eliza_inference_llm_stream_reset(stream) == ELIZA_OK, "reset failed");
    eliza_inference_llm_stream_close(stream);
    eliza_inference_destroy(context);
  }

  const std::string& saved() const { return saved_; }

 private:
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

  const std::string bundle_;
  const std::string slots_;
  const Kind kind_;
  EliLlmStream* stream_ = nullptr;
  std::string saved_;
  bool failed_ = false;
};

// The walk with the `nth` call of a kind failing. False: there is no such call any more.
bool run_session(const std::string& folder, Kind kind, int64_t nth, bool sticky, int64_t* errors) {
  Session session(folder, kind);
  arm(kind, nth, sticky);
  session.run();
  const bool fired = disarm();
  if (session.failed()) ++*errors;
  expect(contents(folder + "/slots/slot") == session.saved(), "the slot file changed after its save");
  expect(eliza_test_alphabet_sessions() == 0, "a session was left");
  return fired || session.failed();
}

// What a backend does with a model file before its runtime sees it.
void check(const std::string& model) {
  if (ends_with(model, ".gguf")) {
    llama_cpp::check_gguf(model);
  } else if (ends_with(model, ".litertlm")) {
    litert_lm::read_model_header(model);
  } else {
    mlx::check_safetensors(model);
  }
}

// The same walk for it.
bool run_check(const std::string& model, Kind kind, int64_t nth, bool sticky, int64_t* errors) {
  bool failed = false;
  arm(kind, nth, sticky);
  try {
    const Inside counted;
    check(model);
  } catch (const Error& error) {
    failed = true;
    expect(kind != Kind::kInterrupt, "gave up when interrupted");
    expect(error.status() == ELIZA_ERR_BUNDLE_INVALID, "another status");
    // A file that cannot be read may be as good as ever.
    const bool blamed = std::strstr(error.what(), "ownload") != nullptr;
    expect(!blamed || kind == Kind::kShrink, "blamed the file");
  } catch (const std::bad_alloc&) {
    failed = true;
    expect(kind == Kind::kAllocate, "bad_alloc");
  }
  if (failed) ++*errors;
  return disarm() || failed;
}

using Run = std::function<bool(Kind, int64_t nth, bool sticky, int64_t* errors)>;

// Every N, with nothing leaked by any.
void every(const char* what, Kind kind, bool sticky, const Run& run) {
  loop = std::string(what) + ", " + name(kind) + (sticky ? ", from the " : ", only the ") + "Nth";
  int64_t errors = 0;
  run(kind, 1 << 30, false, &errors);  // what is made once, is made now
  const int64_t live = live_allocations();
  const size_t descriptors = open_descriptors();
  int64_t nth = 1;
  while (problems < 10 && run(kind, nth, sticky, &errors)) {
    if (live_allocations() != live) problem("leaked memory at N = " + std::to_string(nth));
    if (open_descriptors() != descriptors) problem("leaked a descriptor at N = " + std::to_string(nth));
    if (inheritable_opens() > 0) problem("opened a file without O_CLOEXEC");
    ++nth;
  }
  std::printf("{\"what\": \"%s\", \"kind\": \"%s\", \"sticky\": %s, \"injected\": %lld, \"errors\": %lld}\n", what,
              name(kind), sticky ? "true" : "false", static_cast<long long>(nth - 1), static_cast<long long>(errors));
}

// Memory fails while nothing has been set up yet: each N in a process of its own.
void every_cold_allocation(const std::string& folder) {
  loop = "a first session, allocate";
  int64_t nth = 1;
  for (bool goes_on = true; goes_on && problems < 10; ++nth) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      eliza_test_alphabet_backend();
      int64_t errors = 0;
      const bool fired = run_session(folder, Kind::kAllocate, nth, false, &errors);
      std::fflush(stdout);
      _exit(problems > 0 ? 1 : fired ? 2 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) == 1) problem("at N = " + std::to_string(nth));
    goes_on = WIFEXITED(status) && WEXITSTATUS(status) == 2;
  }
  std::printf("{\"what\": \"first session\", \"kind\": \"allocate\", \"sticky\": false, \"injected\": %lld}\n",
              static_cast<long long>(nth - 2));
}

void make_bundle(const std::string& folder) {
  mkdir((folder + "/bundle").c_str(), 0700);
  mkdir((folder + "/bundle/text").c_str(), 0700);
  mkdir((folder + "/slots").c_str(), 0700);
  std::ofstream(folder + "/bundle/text/model.litertlm") << "not opened here";
  std::ofstream(folder + "/bundle/eliza-1.manifest.json")
      << R"({"id": "alphabet", "files": {"text": [{"path": "text/model.litertlm", "runtimeClass": "litert-lm", )"
      << R"("ctx": 512, "sha256": ")" << std::string(64, '0') << R"("}]}})";
}

int main(const std::string& folder, const std::vector<std::string>& models) {
  make_bundle(folder);
  every_cold_allocation(folder);
  eliza_test_alphabet_backend();
  const Run session = [&](Kind kind, int64_t nth, bool sticky, int64_t* errors) {
    return run_session(folder, kind, nth, sticky, errors);
  };
  for (int kind = 0; kind < kKinds; ++kind) {
    for (const bool sticky : {false, true}) {
      // A call that is interrupted for ever never returns, and is right not to.
      if (sticky && static_cast<Kind>(kind) == Kind::kInterrupt) continue;
      every("session", static_cast<Kind>(kind), sticky, session);
      for (const std::string& model : models) {
        const std::string what = "check of " + model.substr(model.rfind('.'));
        every(what.c_str(), static_cast<Kind>(kind), sticky,
              [&](Kind k, int64_t nth, bool s, int64_t* errors) { return run_check(model, k, nth, s, errors); });
      }
    }
  }
  return problems > 0;
}

}  // namespace
}  // namespace eliza::faults

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "faults FOLDER MODEL...\n");
    return 2;
  }
  return eliza::faults::main(argv[1], {argv + 2, argv + argc});
}
