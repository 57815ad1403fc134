#include "tests/faults/injector.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace eliza::faults {
namespace {

std::atomic<int> armed_kind{-1};
std::atomic<bool> counting{false};
std::atomic<int64_t> countdown{0};
std::atomic<bool> armed_sticky{false};
std::atomic<bool> fired{false};
std::atomic<int64_t> live{0};
std::atomic<int64_t> inheritable{0};
thread_local bool outside = false;

// Whether this call, one of `kind`, fails.
bool fails(Kind kind) {
  if (!counting || outside || armed_kind != static_cast<int>(kind)) return false;
  const int64_t left = --countdown;
  if (left != 0 && !(left < 0 && armed_sticky)) return false;
  fired = true;
  return true;
}

bool fails(Kind kind, int error) {
  if (!fails(kind)) return false;
  errno = error;
  return true;
}

void count_open(bool close_on_exec) {
  if (counting && !outside && !close_on_exec) ++inheritable;
}

bool read_fails() { return fails(Kind::kRead, EIO) || fails(Kind::kInterrupt, EINTR); }

}  // namespace

const char* name(Kind kind) {
  constexpr const char* kNames[kKinds] = {"allocate", "open",   "read", "shrink",    "write",
                                          "sync",     "rename", "stat", "interrupt", "short write"};
  return kNames[static_cast<int>(kind)];
}

void arm(Kind kind, int64_t nth, bool sticky) {
  fired = false;
  armed_sticky = sticky;
  countdown = nth;
  armed_kind = static_cast<int>(kind);
}

bool disarm() {
  armed_kind = -1;
  return fired;
}

Inside::Inside() { counting = true; }
Inside::~Inside() { counting = false; }

Outside::Outside() : before_(outside) { outside = true; }
Outside::~Outside() { outside = before_; }

int64_t live_allocations() { return live; }
int64_t inheritable_opens() { return inheritable; }

}  // namespace eliza::faults

using eliza::faults::count_open;
using eliza::faults::fails;
using eliza::faults::Kind;
using eliza::faults::live;

extern "C" {

void* __real_malloc(size_t size);
void* __real_calloc(size_t count, size_t size);
void* __real_realloc(void* old, size_t size);
int __real_posix_memalign(void** block, size_t alignment, size_t size);
void __real_free(void* block);
int __real_open(const char* path, int flags, ...);
FILE* __real_fopen(const char* path, const char* mode);
DIR* __real_opendir(const char* path);
struct dirent* __real_readdir(DIR* stream);
ssize_t __real_read(int fd, void* data, size_t size);
ssize_t __real_pread(int fd, void* data, size_t size, off_t offset);
size_t __real_fread(void* data, size_t size, size_t count, FILE* stream);
ssize_t __real_write(int fd, const void* data, size_t size);
int __real_rename(const char* from, const char* to);
int __real_stat(const char* path, struct stat* info);
int __real_lstat(const char* path, struct stat* info);
int __real_fstat(int fd, struct stat* info);

void* __wrap_malloc(size_t size) {
  if (fails(Kind::kAllocate, ENOMEM)) return nullptr;
  void* const block = __real_malloc(size);
  if (block != nullptr) ++live;
  return block;
}

void* __wrap_calloc(size_t count, size_t size) {
  if (fails(Kind::kAllocate, ENOMEM)) return nullptr;
  void* const block = __real_calloc(count, size);
  if (block != nullptr) ++live;
  return block;
}

// ggml's.
int __wrap_posix_memalign(void** block, size_t alignment, size_t size) {
  if (fails(Kind::kAllocate)) return ENOMEM;
  const int error = __real_posix_memalign(block, alignment, size);
  if (error == 0) ++live;
  return error;
}

void* __wrap_realloc(void* old, size_t size) {
  if (fails(Kind::kAllocate, ENOMEM)) return nullptr;
  void* const block = __real_realloc(old, size);
  if (old == nullptr && block != nullptr) ++live;
  return block;
}

void __wrap_free(void* block) {
  if (block != nullptr) --live;
  __real_free(block);
}

int __wrap_open(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const int mode = (flags & O_CREAT) != 0 ? va_arg(arguments, int) : 0;
  va_end(arguments);
  count_open((flags & O_CLOEXEC) != 0);
  if (fails(Kind::kOpen, EMFILE) || fails(Kind::kInterrupt, EINTR)) return -1;
  return __real_open(path, flags, mode);
}

FILE* __wrap_fopen(const char* path, const char* mode) {
  count_open(std::strchr(mode, 'e') != nullptr);
  return fails(Kind::kOpen, EMFILE) ? nullptr : __real_fopen(path, mode);
}

DIR* __wrap_opendir(const char* path) {
  if (fails(Kind::kOpen, EMFILE) || fails(Kind::kInterrupt, EINTR)) return nullptr;
  return __real_opendir(path);
}

struct dirent* __wrap_readdir(DIR* stream) { return fails(Kind::kRead, EIO) ? nullptr : __real_readdir(stream); }

ssize_t __wrap_read(int fd, void* data, size_t size) {
  if (eliza::faults::read_fails()) return -1;
  return fails(Kind::kShrink) ? 0 : __real_read(fd, data, size);
}

ssize_t __wrap_pread(int fd, void* data, size_t size, off_t offset) {
  if (eliza::faults::read_fails()) return -1;
  return fails(Kind::kShrink) ? 0 : __real_pread(fd, data, size, offset);
}

size_t __wrap_fread(void* data, size_t size, size_t count, FILE* stream) {
  if (fails(Kind::kShrink)) return 0;
  // A stream whose descriptor cannot be read sets its error flag, as a failing disk does.
  if (fails(Kind::kRead)) {
    const int nowhere = __real_open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nowhere, fileno(stream));
    close(nowhere);
    return __real_fread(data, size, count, stream);
  }
  return __real_fread(data, size, count, stream);
}

ssize_t __wrap_write(int fd, const void* data, size_t size) {
  if (fails(Kind::kWrite, ENOSPC) || fails(Kind::kInterrupt, EINTR)) return -1;
  return __real_write(fd, data, size > 1 && fails(Kind::kShortWrite) ? size / 2 : size);
}

// Not the real one: a thousand of them would take minutes on a slow disk, and no power fails here.
int __wrap_fsync(int) { return fails(Kind::kSync, EIO) || fails(Kind::kInterrupt, EINTR) ? -1 : 0; }

int __wrap_rename(const char* from, const char* to) {
  return fails(Kind::kRename, EACCES) ? -1 : __real_rename(from, to);
}

int __wrap_stat(const char* path, struct stat* info) { return fails(Kind::kStat, EIO) ? -1 : __real_stat(path, info); }

int __wrap_lstat(const char* path, struct stat* info) {
  return fails(Kind::kStat, EIO) ? -1 : __real_lstat(path, info);
}

int __wrap_fstat(int fd, struct stat* info) { return fails(Kind::kStat, EIO) ? -1 : __real_fstat(fd, info); }

}  // extern "C"

// The wrapped malloc and free, which count.
void* operator new(size_t size) {
  void* const block = std::malloc(size == 0 ? 1 : size);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
void* operator new(size_t size, const std::nothrow_t&) noexcept { return std::malloc(size == 0 ? 1 : size); }
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, size_t) noexcept { std::free(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { std::free(block); }
