// The device that MLX computes on: Metal, or the CPU for tests.
//
// The environment variable ELIZA_MLX_DEVICE says which, `auto`, `metal` or `cpu`; unset means auto, and auto means
// Metal. The CPU is only ever taken by name: MLX's CPU build computes on one core without vector instructions, so
// nobody may end up on it unasked.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace eliza::mlx {

enum class Device { kMetal, kCpu };

// "Metal", "cpu".
const char* device_name(Device device);

struct DeviceChoice {
  std::optional<Device> device;
  std::string reason;  // why there is none
};

// What the variable and this host allow. Cheap: nothing is initialised.
DeviceChoice choose_device();

// Makes `device` the one that MLX computes on, for as long as the result lives. MLX has one default device in a
// process: where another one is in use, throws Error. The first use sets MLX up for a process that is not its own
// (cache limits, no compiler runs).
std::shared_ptr<const Device> use_device(Device device);

}  // namespace eliza::mlx
