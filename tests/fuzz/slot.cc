// A slot file: read back, or an error; and what was read can be written and read again.
#include "native/backends/llama_cpp/slot-file.h"
#include "native/base/error.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using eliza::fuzz::require;
  const eliza::llama_cpp::SlotIdentity identity = {1, 2, 3, 4};
  const eliza::fuzz::MemoryFile file(data, size);
  try {
    const eliza::llama_cpp::SavedContext saved = read_slot_file(file.path(), identity);
    require(saved.tokens.size() * sizeof(int32_t) + saved.state.size() <= size, "no more than the file holds");
    require(saved.decoded <= saved.tokens.size() && saved.visible <= saved.tokens.size(), "counts within the tokens");
  } catch (const eliza::Error& error) {
    require(error.status() == ELIZA_ERR_INVALID_ARG, "the argument's fault");
  }
  return 0;
}
