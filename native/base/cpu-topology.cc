#include "native/base/cpu-topology.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>

#include "native/base/cgroup.h"
#include "native/base/environment.h"

#if defined(__linux__)
#include <sched.h>

#include <cmath>
#include <set>
#include <sstream>
#include <vector>

#include "native/base/regular-file.h"
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#include <sys/types.h>
#endif

namespace eliza {
namespace {

constexpr int32_t kMaxThreads = 512;  // GGML_MAX_N_THREADS

// What a variable may ask for: more than anybody means, and not what would take a small host down.
int32_t most_threads() {
  constexpr int32_t kForEachProcessor = 4;
  constexpr int32_t kAlways = 16;
  const int64_t processors = std::thread::hardware_concurrency();
  return static_cast<int32_t>(std::clamp<int64_t>(processors * kForEachProcessor, kAlways, kMaxThreads));
}

#if defined(__linux__)

std::string read_line(const std::string& path) {
  const std::string text = system_text(path);
  return text.substr(0, text.find('\n'));
}

// CPUs of the affinity mask. The kernel's mask may be wider than cpu_set_t: the set grows until it fits.
std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  for (int capacity = CPU_SETSIZE; capacity <= 1 << 20; capacity *= 2) {
    cpu_set_t* set = CPU_ALLOC(capacity);
    if (set == nullptr) break;
    const size_t size = CPU_ALLOC_SIZE(capacity);
    const bool known = sched_getaffinity(0, size, set) == 0;
    const bool too_small = !known && errno == EINVAL;
    for (int cpu = 0; known && cpu < capacity; ++cpu) {
      if (CPU_ISSET_S(cpu, size, set)) cpus.push_back(cpu);
    }
    CPU_FREE(set);
    if (!too_small) break;
  }
  return cpus;
}

// Whole CPUs that one cgroup's quota allows; 0: no limit. `directory` ends in no slash.
int32_t quota_of(const std::string& directory) {
  double quota = 0, period = 0;
  // v2: "max 100000" or "150000 100000".
  std::istringstream v2(read_line(directory + "/cpu.max"));
  if (!(v2 >> quota >> period)) {
    std::istringstream(read_line(directory + "/cpu.cfs_quota_us")) >> quota;
    std::istringstream(read_line(directory + "/cpu.cfs_period_us")) >> period;
  }
  if (quota <= 0 || period <= 0) return 0;
  return std::max(1, static_cast<int32_t>(std::floor(quota / period)));
}

// The tightest CPU quota of this process's cgroup and its parents; 0: none.
int32_t cgroup_quota() {
  int32_t tightest = 0;
  // A directory that does not exist reads as no limit.
  visit_cgroups("cpu", [&](const std::string& path, bool) {
    const int32_t quota = quota_of(path);
    if (quota > 0 && (tightest == 0 || quota < tightest)) tightest = quota;
  });
  return tightest;
}

int32_t count_cores() {
  const std::vector<int> cpus = allowed_cpus();
  // A core's hyperthreads share the list of their siblings. Big and little cores differ in capacity (arm64), or not
  // at all where the files do not exist.
  std::set<std::string> cores;
  std::vector<std::pair<long, std::string>> found;
  long most = 0;
  for (const int cpu : cpus) {
    const std::string directory = "/sys/devices/system/cpu/cpu" + std::to_string(cpu);
    std::string siblings = read_line(directory + "/topology/core_cpus_list");
    if (siblings.empty()) siblings = read_line(directory + "/topology/thread_siblings_list");
    if (siblings.empty()) siblings = std::to_string(cpu);
    const long capacity = std::strtol(read_line(directory + "/cpu_capacity").c_str(), nullptr, 10);
    most = std::max(most, capacity);
    found.emplace_back(capacity, std::move(siblings));
  }
  for (auto& [capacity, siblings] : found) {
    // Phones have one or two prime cores above several big ones: half of the best is still big.
    if (2 * capacity >= most) cores.insert(std::move(siblings));
  }
  int32_t count = static_cast<int32_t>(cores.size());
  const int32_t quota = cgroup_quota();
  if (quota > 0) count = std::min(count, quota);
  return count;
}

#elif defined(__APPLE__)

int32_t count_cores() {
  int32_t count = 0;
  size_t size = sizeof count;
  // Performance cores on Apple silicon; Intel Macs have no levels.
  if (sysctlbyname("hw.perflevel0.physicalcpu", &count, &size, nullptr, 0) == 0 && count > 0) return count;
  size = sizeof count;
  if (sysctlbyname("hw.physicalcpu", &count, &size, nullptr, 0) == 0) return count;
  return 1;
}

#else

int32_t count_cores() { return static_cast<int32_t>(std::thread::hardware_concurrency()); }

#endif

}  // namespace

int32_t available_cores() {
  const int32_t count = count_cores();
  if (count < 1) return 1;
  return count < kMaxThreads ? count : kMaxThreads;
}

int32_t default_threads() {
  const int32_t most = most_threads();
  const std::optional<int64_t> threads =
      number_variable("ELIZA_THREADS", 1, most, "a number from 1 to " + std::to_string(most));
  return threads ? static_cast<int32_t>(*threads) : available_cores();
}

}  // namespace eliza
