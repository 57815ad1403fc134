// The cgroups that a Linux process lives in: where its limits of CPU and memory are read from.
#pragma once

#include <functional>
#include <string>

namespace eliza {

// Calls `visit` with the directory of this process's cgroup for `controller` ("cpu", "memory"), and then with those of
// its parents, and whether they are of cgroup v2, whose files have other names. Directories need not exist: in a
// container the path may be the host's.
void visit_cgroups(const std::string& controller, const std::function<void(const std::string& path, bool v2)>& visit);

}  // namespace eliza
