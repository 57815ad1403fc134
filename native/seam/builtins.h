// The backends this library knows, and which of them this build holds: decided by the gates in //platforms.
#pragma once

#include <vector>

#include "native/seam/selector.h"

namespace eliza {

// All of them; a backend stays known, for reports and error texts, where its gate is off.
std::vector<KnownBackend> known_backends();

}  // namespace eliza
