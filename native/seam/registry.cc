#include "native/seam/registry.h"

#include <algorithm>

#include "native/base/strings.h"

namespace eliza {

bool same_backend_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return ascii_lower(x) == ascii_lower(y); });
}

bool is_llama_cpp_name(std::string_view name) {
  return same_backend_name(name, "llama.cpp") || same_backend_name(name, "llamacpp") ||
         same_backend_name(name, "llama");
}

Registry& Registry::instance() {
  static Registry* const registry = new Registry;
  return *registry;
}

bool Registry::add(LlmBackendFactory* factory) {
  if (factory == nullptr) return false;
  const char* name = factory->name();
  if (!is_set(name) || is_llama_cpp_name(name)) return false;
  RegisteredBackend added{name, factory};

  const std::lock_guard lock(mutex_);
  for (const RegisteredBackend& backend : backends_) {
    if (same_backend_name(backend.name, added.name)) return false;
  }
  backends_.push_back(std::move(added));
  return true;
}

std::vector<RegisteredBackend> Registry::snapshot() const {
  const std::lock_guard lock(mutex_);
  return backends_;
}

}  // namespace eliza

void llm_backend_register(LlmBackendFactory* factory) { eliza::Registry::instance().add(factory); }
