// MLX's C++ API, under the name that its users know it by. Included by sources that compute, and by nothing that is
// C++17.
#pragma once

#include "mlx/mlx.h"

namespace eliza::mlx {

namespace mx = ::mlx::core;

}  // namespace eliza::mlx
