// The header of a .litertlm file: what the model runs on, or an error.
#include "native/backends/litert_lm/model-header.h"
#include "native/base/error.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using eliza::fuzz::require;
  const eliza::fuzz::MemoryFile file(data, size);
  try {
    const eliza::litert_lm::ModelHeader header = eliza::litert_lm::read_model_header(file.path());
    require(!header.backends.empty(), "a backend that it runs on");
    for (const std::string& backend : header.backends) require(!backend.empty(), "a name for each backend");
    require(header.soc.size() <= size, "no longer a name than the file");
  } catch (const eliza::Error& error) {
    require(error.status() == ELIZA_ERR_BUNDLE_INVALID, "the bundle's fault");
    require(std::string_view(error.what()).size() < 4000, "a message for reading");
  }
  return 0;
}
