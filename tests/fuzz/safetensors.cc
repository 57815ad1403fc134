// The check of a safetensors file's header: the tensors it holds, or an error.
#include "native/backends/mlx/safetensors-check.h"
#include "native/base/error.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using eliza::fuzz::require;
  const eliza::fuzz::MemoryFile file(data, size);
  try {
    uint64_t bytes = 0;
    for (const auto& [name, tensor] : eliza::mlx::check_safetensors(file.path()).tensors) {
      require(!tensor.dtype.empty(), "a type for each tensor");
      bytes += tensor.bytes;
    }
    require(bytes <= size, "no more tensors than the file has room for");
  } catch (const eliza::Error& error) {
    require(error.status() == ELIZA_ERR_BUNDLE_INVALID, "the bundle's fault");
    require(std::string_view(error.what()).size() < 4000, "a message for reading");
  }
  return 0;
}
