// A manifest: parsed, or an error that names the file.
#include "native/bundle/manifest.h"

#include "native/base/error.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using eliza::fuzz::require;
  try {
    const eliza::Manifest manifest =
        eliza::parse_manifest(std::string_view(reinterpret_cast<const char*>(data), size), "the manifest");
    for (const eliza::ManifestFile& file : manifest.text) {
      require(("/" + file.path + "/").find("/../") == std::string::npos, "no way out of the bundle");
      require(!file.path.empty() && file.path.front() != '/', "a path in the bundle");
      require(file.sha256.size() == 64, "a digest");
      require(file.context_size >= 0, "a context size");
    }
  } catch (const eliza::Error& error) {
    eliza::fuzz::require_message(error.what());
    require(std::string_view(error.what()).find("the manifest") != std::string_view::npos, "the file is named");
  }
  return 0;
}
