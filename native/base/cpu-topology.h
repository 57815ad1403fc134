// How many threads a runtime should use on this host.
#pragma once

#include <cstdint>

namespace eliza {

// Physical cores (big cores where there are big and little ones) that this process may use: its affinity mask and
// its cgroup's CPU quota count, hyperthreads do not. At least 1.
//
// A thread without a core of its own is ruinous: the runtimes' workers wait for each other by spinning, several
// hundred times per token.
int32_t available_cores();

// The environment variable ELIZA_THREADS, else available_cores(). Throws Error(ELIZA_ERR_INVALID_ARG) where the
// variable is not a number from 1 to four for each processor of the host (but to 16 at least, and to 512 at most).
int32_t default_threads();

}  // namespace eliza
