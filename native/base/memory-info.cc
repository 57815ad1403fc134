#include "native/base/memory-info.h"

#include "native/base/cgroup.h"

#if defined(__linux__)
#include <algorithm>
#include <sstream>
#include <string>

#include "native/base/regular-file.h"
#elif defined(__APPLE__)
#include <mach/mach.h>
#include <mach/mach_host.h>
#endif

namespace eliza {

#if defined(__linux__)
namespace {

std::optional<uint64_t> read_number(const std::string& path) {
  std::istringstream file(system_text(path));
  uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;  // no such file, or "max"
}

// What one cgroup leaves; its page cache can be reclaimed, so it does not count as used.
std::optional<uint64_t> left_in(const std::string& directory, const char* limit_name, const char* usage_name) {
  const std::optional<uint64_t> limit = read_number(directory + "/" + limit_name);
  const std::optional<uint64_t> usage = read_number(directory + "/" + usage_name);
  if (!limit || !usage) return std::nullopt;
  uint64_t reclaimable = 0;
  std::istringstream stat(system_text(directory + "/memory.stat"));
  std::string key;
  for (uint64_t value; stat >> key >> value;) {
    if (key == "inactive_file" || key == "total_inactive_file") reclaimable = value;
  }
  const uint64_t used = *usage - std::min(*usage, reclaimable);
  return *limit - std::min(*limit, used);
}

// The least that this process's cgroup and its parents leave.
std::optional<uint64_t> left_in_cgroups() {
  std::optional<uint64_t> least;
  visit_cgroups("memory", [&](const std::string& path, bool v2) {
    const std::optional<uint64_t> left = v2 ? left_in(path, "memory.max", "memory.current")
                                            : left_in(path, "memory.limit_in_bytes", "memory.usage_in_bytes");
    if (left && (!least || *left < *least)) least = left;
  });
  return least;
}

}  // namespace

std::optional<uint64_t> available_memory() {
  std::optional<uint64_t> available;
  std::istringstream meminfo(system_text("/proc/meminfo"));
  for (std::string line; std::getline(meminfo, line);) {
    if (line.rfind("MemAvailable:", 0) != 0) continue;
    uint64_t kibibytes = 0;
    if (std::istringstream(line.substr(13)) >> kibibytes) available = kibibytes * 1024;
    break;
  }
  const std::optional<uint64_t> cgroup = left_in_cgroups();
  if (!available) return cgroup;
  return cgroup ? std::min(*available, *cgroup) : available;
}

#elif defined(__APPLE__)

std::optional<uint64_t> available_memory() {
  const mach_port_t host = mach_host_self();
  vm_statistics64_data_t statistics;
  mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
  vm_size_t page_size = 0;
  const bool known =
      host_page_size(host, &page_size) == KERN_SUCCESS &&
      host_statistics64(host, HOST_VM_INFO64, reinterpret_cast<host_info64_t>(&statistics), &count) == KERN_SUCCESS;
  mach_port_deallocate(mach_task_self(), host);
  if (!known) return std::nullopt;
  return (static_cast<uint64_t>(statistics.free_count) + statistics.inactive_count + statistics.purgeable_count) *
         page_size;
}

#else

std::optional<uint64_t> available_memory() { return std::nullopt; }

#endif

}  // namespace eliza
