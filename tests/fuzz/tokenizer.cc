// A tokenizer.json: ids that are the vocabulary's and give a text, or an error that names the file.
#include <unistd.h>

#include <string>
#include <vector>

#include "native/base/error.h"
#include "native/text/hf-tokenizer.h"
#include "tests/fuzz/input.h"

namespace {

// A directory that holds a tokenizer.json, for as long as it lives.
class Directory {
 public:
  explicit Directory(const std::string& tokenizer) : path_(eliza::fuzz::make_folder()) {
    eliza::fuzz::require(::symlink(tokenizer.c_str(), file().c_str()) == 0, "a link can be made");
  }
  ~Directory() {
    ::unlink(file().c_str());
    ::rmdir(path_.c_str());
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string file() const { return path_ + "/tokenizer.json"; }

  std::string path_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using eliza::fuzz::require;
  const eliza::fuzz::MemoryFile file(data, size);
  const Directory directory(file.path());
  try {
    const auto tokenizer = eliza::HfTokenizer::load(directory.path());
    for (const bool parse_special : {false, true}) {
      const std::vector<int32_t> ids =
          tokenizer->tokenize("ab <s>12 \xC3\xA9\xF0\x9F\x98\x80\xFF\n", true, parse_special);
      for (const int32_t id : ids) require(id >= 0 && id < tokenizer->size(), "an id of the vocabulary");
      tokenizer->detokenize(ids.data(), ids.size(), true, true);
    }
  } catch (const eliza::Error& error) {
    eliza::fuzz::require_message(error.what());
    require(std::string_view(error.what()).find("tokenizer.json") != std::string_view::npos, "the file is named");
  }
  return 0;
}
