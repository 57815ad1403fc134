#include "native/backends/llama_cpp/slot-file.h"

#include <cstring>
#include <type_traits>

#include "native/base/slot-bytes.h"
#include "native/base/word-hash.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Slot files are written as they lie in memory: little-endian hosts only."
#endif

namespace eliza::llama_cpp {
namespace {

constexpr char kMagic[8] = {'E', 'L', 'I', 'Z', 'A', 'S', 'L', 'T'};
constexpr uint32_t kFormat = 1;

struct Header {
  char magic[8];
  uint32_t format;
  uint32_t header_size;
  uint64_t checksum;  // of everything else in the file
  uint64_t model;
  uint64_t runtime;
  uint32_t type_k;
  uint32_t type_v;
  uint64_t num_tokens;
  uint64_t decoded;
  uint64_t visible;
  uint64_t state_size;
};
static_assert(sizeof(Header) == 80 && std::is_trivially_copyable_v<Header>, "the file's layout");

// Finds accidents, not forgers: what a forged state holds is checked by llama.cpp as it reads it.
uint64_t checksum(const Header& header, const void* tokens, const void* state) {
  Header copy = header;
  copy.checksum = 0;
  uint64_t value = word_hash(kWordHashSeed, &copy, sizeof copy);
  value = word_hash(value, tokens, header.num_tokens * sizeof(int32_t));
  return word_hash(value, state, header.state_size);
}

}  // namespace

void write_slot_file(const std::string& path, const SlotIdentity& identity, const SavedContext& context) {
  Header header = {};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.format = kFormat;
  header.header_size = sizeof header;
  header.model = identity.model;
  header.runtime = identity.runtime;
  header.type_k = identity.type_k;
  header.type_v = identity.type_v;
  header.num_tokens = context.tokens.size();
  header.decoded = context.decoded;
  header.visible = context.visible;
  header.state_size = context.state.size();
  header.checksum = checksum(header, context.tokens.data(), context.state.data());

  write_slot_bytes(path, {{&header, sizeof header},
                          {context.tokens.data(), context.tokens.size() * sizeof(int32_t)},
                          {context.state.data(), context.state.size()}});
}

SavedContext read_slot_file(const std::string& path, const SlotIdentity& identity) {
  SlotReader file(path);
  const uint64_t size = file.size();

  Header header;
  if (size < sizeof header || !file.read(&header, sizeof header)) {
    refuse_slot(path, "has " + std::to_string(size) + " bytes, too few for a slot file");
  }
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) refuse_slot(path, "is no slot file");
  if (header.format != kFormat || header.header_size != sizeof header) {
    refuse_slot(path, "has format version " + std::to_string(header.format) + ", where this library reads version " +
                          std::to_string(kFormat) + ": save the slot again");
  }
  const uint64_t payload = size - sizeof header;
  if (header.num_tokens > payload / sizeof(int32_t) ||
      header.state_size != payload - header.num_tokens * sizeof(int32_t)) {
    refuse_slot(path, "is truncated, or has grown: its header and its " + std::to_string(size) + " bytes do not agree");
  }
  if (header.model != identity.model) refuse_slot(path, "was saved from another model");
  if (header.runtime != identity.runtime) {
    refuse_slot(path,
                "was saved by another version of llama.cpp, whose states this one cannot read: save the slot again");
  }
  if (header.type_k != identity.type_k || header.type_v != identity.type_v) {
    refuse_slot(path,
                "was saved with other types of KV cache: open the stream with the cache_type_k and cache_type_v of "
                "then");
  }
  if (header.decoded > header.num_tokens || header.visible > header.num_tokens) refuse_slot(path, "contradicts itself");

  SavedContext context;
  context.decoded = header.decoded;
  context.visible = header.visible;
  context.tokens.resize(header.num_tokens);
  context.state.resize(header.state_size);
  if (!file.read(context.tokens.data(), header.num_tokens * sizeof(int32_t)) ||
      !file.read(context.state.data(), header.state_size)) {
    refuse_slot(path, "became shorter while it was read");
  }
  if (checksum(header, context.tokens.data(), context.state.data()) != header.checksum) {
    refuse_slot(path, "is damaged: its checksum does not fit");
  }
  return context;
}

}  // namespace eliza::llama_cpp
