// LiteRT-LM behind the seam: text/*.litertlm, on Android NPUs first. The runtime is a shared library that is looked for
// at run time (library.h), and docs/litert_lm.md is about all of it.
#pragma once

#include "native/seam/llm-backend.h"

namespace eliza::litert_lm {

// "litert-lm". Lives as long as the process.
LlmBackendFactory* factory();

}  // namespace eliza::litert_lm
