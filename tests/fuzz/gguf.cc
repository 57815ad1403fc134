// The check of a model file's header: what it knows of the file, or an error.
#include "native/backends/llama_cpp/gguf-check.h"
#include "native/base/error.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using eliza::fuzz::require;
  const eliza::fuzz::MemoryFile file(data, size);
  try {
    const eliza::llama_cpp::GgufHeader header = eliza::llama_cpp::check_gguf(file.path());
    require(header.tensor_bytes / 64 <= size, "no more tensors than a file has room for");
    for (const auto& [key, values] : header.integers) require(!values.empty() || !key.empty(), "a value for a key");
    require(header.integer("block_count").value_or(1) <= 512, "block_count within its bound");
  } catch (const eliza::Error& error) {
    require(error.status() == ELIZA_ERR_BUNDLE_INVALID, "the bundle's fault");
    require(std::string_view(error.what()).size() < 4000, "a message for reading");
  }
  return 0;
}
