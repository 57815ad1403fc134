#include "native/backends/llama_cpp/slot-file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <type_traits>

#include "native/base/error.h"

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

// FNV-1a over words of eight bytes, the last one filled with zeros. Finds accidents, not forgers: what a forged state
// holds is checked by llama.cpp as it reads it.
uint64_t hash(uint64_t value, const void* data, size_t size) {
  const char* bytes = static_cast<const char*>(data);
  for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + i, std::min(sizeof word, size - i));
    value = (value ^ word) * 0x100000001b3;
    value ^= value >> 29;
  }
  return value;
}

uint64_t checksum(const Header& header, const void* tokens, const void* state) {
  Header copy = header;
  copy.checksum = 0;
  uint64_t value = hash(0xcbf29ce484222325, &copy, sizeof copy);
  value = hash(value, tokens, header.num_tokens * sizeof(int32_t));
  return hash(value, state, header.state_size);
}

std::string system_message() { return std::generic_category().message(errno); }

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

bool write_all(int fd, const void* data, size_t size) {
  const char* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t count = ::write(fd, bytes, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

bool read_all(int fd, void* data, size_t size) {
  char* bytes = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t count = ::read(fd, bytes, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

// Unlinks a temporary file that was not renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string path) : path_(std::move(path)) {}
  ~TemporaryFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }
  bool rename_to(const std::string& path) {
    if (::rename(path_.c_str(), path.c_str()) != 0) return false;
    path_.clear();
    return true;
  }

 private:
  std::string path_;
};

std::string temporary_name(const std::string& path) {
  static std::atomic<uint64_t> counter{0};
  return path + ".tmp." + std::to_string(::getpid()) + "." + std::to_string(counter++);
}

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw Error(ELIZA_ERR_INVALID_ARG, "the slot file " + path + " " + what + "; nothing was restored");
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

  const auto fail = [&](const char* what) {
    const int error = errno;
    throw Error(ELIZA_ERR_FFI_FAULT,
                "the slot file " + path + " cannot be " + what + ": " + std::generic_category().message(error));
  };
  // A rename takes the place of whatever is there: of a device or a pipe, too.
  struct stat target{};
  if (::stat(path.c_str(), &target) == 0 && !S_ISREG(target.st_mode)) {
    throw Error(ELIZA_ERR_INVALID_ARG,
                "the slot file " + path + " exists and is not a regular file; name another. Nothing was saved");
  }
  TemporaryFile temporary(temporary_name(path));
  {
    // Mine alone: a conversation is in it.
    const Descriptor file(::open(temporary.path().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (file.get() < 0) fail("created");
    if (!write_all(file.get(), &header, sizeof header) ||
        !write_all(file.get(), context.tokens.data(), context.tokens.size() * sizeof(int32_t)) ||
        !write_all(file.get(), context.state.data(), context.state.size()) || ::fsync(file.get()) != 0) {
      fail("written");
    }
  }
  const std::string directory_path = directory_of(path);
  if (!temporary.rename_to(path)) fail("put in its place");
  // From here on the slot is saved, and nothing may fail.
  // So that the name, too, survives a power cut. Not every file system can; then the file is whole all the same.
  const Descriptor directory(::open(directory_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() >= 0) ::fsync(directory.get());
}

SavedContext read_slot_file(const std::string& path, const SlotIdentity& identity) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) refuse(path, "cannot be opened: " + system_message());
  struct stat info{};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) refuse(path, "is not a regular file");
  const uint64_t size = static_cast<uint64_t>(info.st_size);

  Header header;
  if (size < sizeof header || !read_all(file.get(), &header, sizeof header)) {
    refuse(path, "has " + std::to_string(size) + " bytes, too few for a slot file");
  }
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) refuse(path, "is no slot file");
  if (header.format != kFormat || header.header_size != sizeof header) {
    refuse(path, "has format version " + std::to_string(header.format) + ", where this library reads version " +
                     std::to_string(kFormat) + ": save the slot again");
  }
  const uint64_t payload = size - sizeof header;
  if (header.num_tokens > payload / sizeof(int32_t) ||
      header.state_size != payload - header.num_tokens * sizeof(int32_t)) {
    refuse(path, "is truncated, or has grown: its header and its " + std::to_string(size) + " bytes do not agree");
  }
  if (header.model != identity.model) refuse(path, "was saved from another model");
  if (header.runtime != identity.runtime) {
    refuse(path, "was saved by another version of llama.cpp, whose states this one cannot read: save the slot again");
  }
  if (header.type_k != identity.type_k || header.type_v != identity.type_v) {
    refuse(path,
           "was saved with other types of KV cache: open the stream with the cache_type_k and cache_type_v of "
           "then");
  }
  if (header.decoded > header.num_tokens || header.visible > header.num_tokens) refuse(path, "contradicts itself");

  SavedContext context;
  context.decoded = header.decoded;
  context.visible = header.visible;
  context.tokens.resize(header.num_tokens);
  context.state.resize(header.state_size);
  if (!read_all(file.get(), context.tokens.data(), header.num_tokens * sizeof(int32_t)) ||
      !read_all(file.get(), context.state.data(), header.state_size)) {
    refuse(path, "became shorter while it was read");
  }
  if (checksum(header, context.tokens.data(), context.state.data()) != header.checksum) {
    refuse(path, "is damaged: its checksum does not fit");
  }
  return context;
}

}  // namespace eliza::llama_cpp
