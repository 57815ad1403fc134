#include "native/backends/mlx/device.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>

#include "mlx/backend/metal/metal.h"
#include "mlx/compile.h"
#include "mlx/device.h"
#include "mlx/memory.h"
#include "native/base/environment.h"
#include "native/base/error.h"
#include "native/base/strings.h"

namespace eliza::mlx {
namespace {

namespace mx = ::mlx::core;

constexpr char kVariable[] = "ELIZA_MLX_DEVICE";

// Freed buffers that MLX keeps for the next step. By default it would keep as many as there is memory.
constexpr size_t kCacheBytes = size_t{256} << 20;

std::string wanted_device() {
  std::string wanted = variable(kVariable);
  std::transform(wanted.begin(), wanted.end(), wanted.begin(), ascii_lower);
  return wanted.empty() ? "auto" : wanted;
}

// MLX's compiled kernels lie beside this library, whichever folder MLX was built for.
void find_metal_kernels() {
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&find_metal_kernels), &self) == 0 || self.dli_fname == nullptr) return;
  const std::string path = self.dli_fname;
  const size_t slash = path.rfind('/');
  const std::string kernels = (slash == std::string::npos ? "." : path.substr(0, slash)) + "/mlx.metallib";
  if (::access(kernels.c_str(), R_OK) == 0) mx::metal::set_metallib_path(kernels);
}

void set_up(Device device) {
  if (device == Device::kMetal) {
    find_metal_kernels();
    mx::set_default_device(mx::Device(mx::Device::gpu));
  } else {
    mx::set_default_device(mx::Device(mx::Device::cpu));
    // Compiled functions would be C++ that MLX has g++ compile, and loads, in a folder that everybody may write to.
    mx::disable_compile();
  }
  mx::set_cache_limit(kCacheBytes);
}

}  // namespace

const char* device_name(Device device) { return device == Device::kMetal ? "Metal" : "cpu"; }

DeviceChoice choose_device() {
  const std::string wanted = wanted_device();
  if (wanted == "cpu") return {Device::kCpu, ""};
  if (wanted != "auto" && wanted != "metal") {
    return {std::nullopt,
            std::string(kVariable) + " is '" + wanted + "': it takes auto, metal or cpu; correct it, or unset it"};
  }
  if (mx::metal::is_available()) return {Device::kMetal, ""};
  return {std::nullopt, std::string("there is no Metal device on this host; ") + kVariable +
                            "=cpu runs MLX on the CPU, slowly, for tests"};
}

std::shared_ptr<const Device> use_device(Device device) {
  static std::mutex* const mutex = new std::mutex;
  static std::weak_ptr<const Device>* const current = new std::weak_ptr<const Device>;
  static const pid_t process = getpid();
  if (process != getpid()) {
    throw Error(ELIZA_ERR_INVALID_ARG,
                "MLX was started in the process that this one was forked from, and its threads have stayed there; run "
                "another program (exec), or start MLX in the child alone");
  }
  const std::lock_guard<std::mutex> lock(*mutex);
  if (std::shared_ptr<const Device> in_use = current->lock()) {
    if (*in_use == device) return in_use;
    throw Error(ELIZA_ERR_INVALID_ARG, std::string(kVariable) + " asks for " + device_name(device) +
                                           ", but this process has MLX streams on " + device_name(*in_use) +
                                           ", and MLX computes on one device at a time; close those first");
  }
  set_up(device);
  auto in_use = std::make_shared<const Device>(device);
  *current = in_use;
  return in_use;
}

}  // namespace eliza::mlx
