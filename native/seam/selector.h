// Decides which backend answers, and says why: the rules of docs/backends.md as one function of its arguments.
//
// It reads no environment variable, no file and no global, so a test can pose every case there is. What surrounds it
// is in selection.h (where its arguments come from) and report.h (its reasons as JSON).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "native/seam/llm-backend.h"
#include "native/seam/registry.h"

namespace eliza {

// A backend this library knows by name, whether or not this build holds it.
struct KnownBackend {
  std::string name;
  std::string flag;  // the build flag that compiles it in, for example "--//platforms:enable_mlx"
  bool compiled;
};

struct BundleFacts {
  std::string directory;
  bool has_text_gguf = false;  // holds what llama.cpp reads
  std::string error;           // not empty: not a bundle at all, and why
};

// How much to ask the backends. Under a hard select, always the named one about everything and the others nothing: they
// stay unloaded, perhaps because loading one of them ends the process.
enum class Ask {
  // What decides: can_serve, then available, then can_honour, up to a backend's first no. So a bundle of GGUF files
  // loads no other runtime. The reason of a backend that is passed over says no more than which answer was a no.
  kOpen,
  // Everything, and explain after a no.
  kReport,
};

struct SelectionRequest {
  std::optional<std::string> env_value;  // of ELIZA_LLM_BACKEND; nullopt: unset
  BundleFacts bundle;
  std::vector<RegisteredBackend> registered;  // ties go to the first
  std::vector<KnownBackend> known;
  const eliza_llm_stream_config_t* config = nullptr;  // null: nothing to honour
  Ask ask = Ask::kOpen;
};

// What is known of one backend after a decision. nullopt: not asked.
struct BackendRow {
  std::string name;
  LlmBackendFactory* factory = nullptr;  // null for llama.cpp, and where it is not registered
  bool compiled = false;
  std::optional<bool> available;
  std::optional<bool> can_serve;
  std::optional<bool> can_honour;
  std::optional<int> rank;  // asked only where available: it depends on the device found
  bool chosen = false;
  std::string reason;  // why chosen or not, as a phrase
};

struct Decision {
  enum class Outcome { kLlamaCpp, kFactory, kError };
  Outcome outcome = Outcome::kLlamaCpp;
  bool named = false;                    // the variable names a backend, or tries to
  LlmBackendFactory* factory = nullptr;  // of kFactory
  std::string error;                     // of kError: what is wrong, with which value, and what to do
  std::vector<BackendRow> backends;      // llama.cpp, then the registered in their order, then the only known
};

// Throws nothing of a factory's but std::bad_alloc: any other exception from one of its answers is a no, with the
// exception's text as the reason.
Decision decide(const SelectionRequest& request);

}  // namespace eliza
