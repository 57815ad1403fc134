// MLX behind the seam: a directory with config.json and *.safetensors in text/, on Apple Silicon first.
//
// This version recognises such models and says what a bundle lacks. It has no runtime to run them with: it is never
// available, so a selection passes it over, and naming it in ELIZA_LLM_BACKEND is an error that says so. CoreML
// packages are recognised too, but are another runtime's.
#pragma once

#include "native/seam/llm-backend.h"

namespace eliza::mlx {

// "mlx-coreml". Lives as long as the process.
LlmBackendFactory* factory();

}  // namespace eliza::mlx
