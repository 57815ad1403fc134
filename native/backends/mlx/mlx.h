// MLX behind the seam: a directory with config.json and *.safetensors in text/, on Apple Silicon; on MLX's CPU build,
// for tests, elsewhere.
//
// CoreML packages are recognised too, and are another runtime's.
#pragma once

#include "native/seam/llm-backend.h"

namespace eliza::mlx {

// "mlx-coreml". Lives as long as the process.
LlmBackendFactory* factory();

}  // namespace eliza::mlx
