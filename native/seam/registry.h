// Which backends exist in this process. llm_backend_register (llm-backend.h) adds to the one that llm_backend_select
// reads; tests have their own.
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "native/seam/llm-backend.h"

namespace eliza {

// Whether two backend names are the same: ASCII letters compare without case, as in ELIZA_LLM_BACKEND.
bool same_backend_name(std::string_view a, std::string_view b);

// Whether `name` means the in-tree path: "llama.cpp", "llamacpp" or "llama".
bool is_llama_cpp_name(std::string_view name);

struct RegisteredBackend {
  std::string name;            // as the factory gave it when it was registered
  LlmBackendFactory* factory;  // never null, not owned
};

// Every function may be called from any thread. No lock is held while a factory is asked for something.
class Registry {
 public:
  // The process-wide one. It is never destroyed: threads may still select while the process exits.
  static Registry& instance();

  // Adds a factory behind those already there. False, and nothing happens, where it is null, has no name, has the name
  // of an earlier one, or a name of the in-tree path, which is never registered.
  bool add(LlmBackendFactory* factory);

  // The factories as they are now, in the order of their registration.
  std::vector<RegisteredBackend> snapshot() const;

 private:
  mutable std::mutex mutex_;
  std::vector<RegisteredBackend> backends_;
};

}  // namespace eliza
