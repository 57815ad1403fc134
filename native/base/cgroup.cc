#include "native/base/cgroup.h"

#include <sstream>

#include "native/base/regular-file.h"

namespace eliza {

void visit_cgroups(const std::string& controller, const std::function<void(const std::string& path, bool v2)>& visit) {
  std::istringstream file(system_text("/proc/self/cgroup"));
  // "0::/user.slice" (v2) or "3:cpu,cpuacct:/docker/…" (v1).
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool v2 = controllers == ",,";
    if (!v2 && controllers.find("," + controller + ",") == std::string::npos) continue;
    const std::string mount = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/" + controller;
    for (std::string path = line.substr(second + 1);; path.erase(path.rfind('/'))) {
      visit(mount + (path == "/" ? "" : path), v2);
      if (path.empty() || path.rfind('/') == std::string::npos) break;
    }
  }
}

}  // namespace eliza
