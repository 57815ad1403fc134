// LiteRT-LM behind the seam: text/*.litertlm, on Android NPUs first.
//
// This version recognises such models and says what a bundle lacks. It has no runtime to run them with: it is never
// available, so a selection passes it over, and naming it in ELIZA_LLM_BACKEND is an error that says so.
#pragma once

#include "native/seam/llm-backend.h"

namespace eliza::litert_lm {

// "litert-lm". Lives as long as the process.
LlmBackendFactory* factory();

}  // namespace eliza::litert_lm
