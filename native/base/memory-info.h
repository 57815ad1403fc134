// How much memory this process can still use.
#pragma once

#include <cstdint>
#include <optional>

namespace eliza {

// Bytes that can be allocated without swapping, or being killed for it: what the system has available, and what the
// process's cgroup leaves. nullopt where the system does not tell.
std::optional<uint64_t> available_memory();

}  // namespace eliza
