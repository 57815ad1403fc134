#include "third_party/llama_cpp/cpu-features.h"

#include <cstdint>

#include "third_party/llama_cpp/cpu-level.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace eliza {
namespace {

#if defined(__x86_64__)

constexpr bool has_bit(uint32_t word, int bit) { return (word >> bit & 1) != 0; }

// Bit numbers: Intel's Software Developer's Manual, volume 2A, CPUID. The compiler's own
// __builtin_cpu_supports does not know f16c everywhere.
bool x86_feature(std::string_view name) {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return false;
  const uint32_t basic = ecx;
  if (name == "sse4.2") return has_bit(basic, 20) && has_bit(basic, 23);  // and popcnt: -msse4.2 is both

  uint32_t extended = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0) extended = ebx;
  if (name == "bmi2") return has_bit(extended, 8);

  // The rest works on the ymm registers: the kernel must save them across a context switch too,
  // which bits 1 and 2 of XCR0 tell once OSXSAVE says that XCR0 can be read.
  constexpr uint32_t kSseAndAvxState = 0b110;
  if (!has_bit(basic, 27)) return false;
  uint32_t xcr0_low = 0, xcr0_high = 0;
  __asm__("xgetbv" : "=a"(xcr0_low), "=d"(xcr0_high) : "c"(0));
  if ((xcr0_low & kSseAndAvxState) != kSseAndAvxState) return false;

  if (name == "avx") return has_bit(basic, 28);
  if (name == "fma") return has_bit(basic, 12);
  if (name == "f16c") return has_bit(basic, 29);
  if (name == "avx2") return has_bit(extended, 5);
  return false;
}

#elif defined(__aarch64__) && defined(__linux__)

// Bits of AT_HWCAP: Linux, arch/arm64/include/uapi/asm/hwcap.h. Spelled out because an old libc's
// headers lack them.
bool arm_feature(std::string_view name) {
  constexpr unsigned long kFpHp = 1UL << 9, kAsimdHp = 1UL << 10, kAsimdDp = 1UL << 20;
  const unsigned long capabilities = getauxval(AT_HWCAP);
  if (name == "fp16") return (capabilities & kFpHp) != 0 && (capabilities & kAsimdHp) != 0;
  if (name == "dotprod") return (capabilities & kAsimdDp) != 0;
  return false;
}

#elif defined(__aarch64__) && defined(__APPLE__)

bool arm_feature(std::string_view name) {
  const char* key = name == "fp16"      ? "hw.optional.arm.FEAT_FP16"
                    : name == "dotprod" ? "hw.optional.arm.FEAT_DotProd"
                                        : nullptr;
  int present = 0;
  size_t size = sizeof(present);
  return key != nullptr && sysctlbyname(key, &present, &size, nullptr, 0) == 0 && present != 0;
}

#endif

}  // namespace

bool host_has_cpu_feature(std::string_view name) {
#if defined(__x86_64__)
  return x86_feature(name);
#elif defined(__aarch64__)
  return arm_feature(name);
#else
  return false;
#endif
}

std::string missing_cpu_features() {
  std::string missing;
  for (const std::string_view name : kRequiredCpuFeatures) {
    if (name.empty() || host_has_cpu_feature(name)) continue;
    if (!missing.empty()) missing += ", ";
    missing += name;
  }
  return missing;
}

}  // namespace eliza
