// Runs a fuzz target without a fuzzer: on the files of its corpus, and on so many small changes of each, the same ones
// on every run.
//
//   NAME_replay CHANGES FILE...
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Bytes = std::vector<uint8_t>;

void change(Bytes& bytes, std::mt19937& random) {
  const uint8_t interesting[] = {0, 1, 0x7F, 0x80, 0xFF, '"', '{', static_cast<uint8_t>(random())};
  const size_t at = bytes.empty() ? 0 : random() % bytes.size();
  const uint8_t byte = interesting[random() % sizeof interesting];
  switch (random() % 4) {
    case 0:
      bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), byte);
      break;
    case 1:
      bytes.resize(at);
      break;
    default:
      if (!bytes.empty()) bytes[at] = byte;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return std::fprintf(stderr, "%s CHANGES FILE...\n", argv[0]), 2;
  std::mt19937 random(1);
  long inputs = 0;
  for (int i = 2; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    if (!file) return std::fprintf(stderr, "%s cannot be opened\n", argv[i]), 2;
    const Bytes seed{std::istreambuf_iterator<char>(file), {}};
    LLVMFuzzerTestOneInput(seed.data(), seed.size());
    ++inputs;
    for (long n = std::atol(argv[1]); n > 0; --n, ++inputs) {
      Bytes changed = seed;
      for (unsigned changes = 1 + random() % 4; changes > 0; --changes) change(changed, random);
      LLVMFuzzerTestOneInput(changed.data(), changed.size());
    }
  }
  std::printf("%ld inputs\n", inputs);
}
