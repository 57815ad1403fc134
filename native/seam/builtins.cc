#include "native/seam/builtins.h"

#include "native/seam/llm-backend.h"

// Defined by BUILD.bazel where a gate is on.
#ifdef ELIZA_WITH_LITERT_LM
#include "native/backends/litert_lm/litert-lm.h"
#endif
#ifdef ELIZA_WITH_MLX
#include "native/backends/mlx/mlx.h"
#endif

namespace eliza {

namespace {

struct Builtin {
  const char* name;
  const char* flag;
  LlmBackendFactory* (*factory)();  // null: not compiled in
};

// A table, and not objects that register themselves: those would need a global constructor each, and a linker told to
// keep files that nobody refers to.
constexpr Builtin kBuiltins[] = {
    {"litert-lm", "--//platforms:enable_litert",
#ifdef ELIZA_WITH_LITERT_LM
     &litert_lm::factory
#else
     nullptr
#endif
    },
    {"mlx-coreml", "--//platforms:enable_mlx",
#ifdef ELIZA_WITH_MLX
     &mlx::factory
#else
     nullptr
#endif
    },
};

}  // namespace

std::vector<KnownBackend> known_backends() {
  std::vector<KnownBackend> known;
  for (const Builtin& builtin : kBuiltins) known.push_back({builtin.name, builtin.flag, builtin.factory != nullptr});
  return known;
}

}  // namespace eliza

void llm_backend_register_builtins() {
  for (const eliza::Builtin& builtin : eliza::kBuiltins) {
    if (builtin.factory != nullptr) llm_backend_register(builtin.factory());
  }
}
