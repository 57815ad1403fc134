// The walk of walk.h on the layers above the runtimes, with a backend of our own (tests/alphabet), and one through each
// check that a backend makes of a model file.
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
#include "tests/faults/walk.h"

namespace eliza::faults {
namespace {

// The alphabet goes on, two tokens a letter at its end.
Course course_in(const std::string& folder) {
  Course course;
  course.bundle = folder + "/bundle";
  course.slots = folder + "/slots";
  course.config.max_tokens = 8;
  course.prompt = "wxy";
  course.text =
      "z\xC3\xA9"
      "abcde";
  course.more = "b";
  course.more_text = "cdefghij";
  return course;
}

bool run_session(const std::string& folder, Kind kind, int64_t nth, bool sticky, int64_t* errors) {
  const bool goes_on = walk(course_in(folder), kind, nth, sticky, errors);
  expect(eliza_test_alphabet_sessions() == 0, "a session was left");
  return goes_on;
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

// Memory fails while nothing has been set up yet: each N in a process of its own.
void every_cold_allocation(const std::string& folder) {
  begin_loop("a first session", Kind::kAllocate);
  int64_t nth = 1;
  for (bool goes_on = true; goes_on && problems() < 10; ++nth) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      eliza_test_alphabet_backend();
      int64_t errors = 0;
      const bool fired = run_session(folder, Kind::kAllocate, nth, false, &errors);
      std::fflush(stdout);
      _exit(problems() > 0 ? 1 : fired ? 2 : 0);
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
  return problems() > 0;
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
