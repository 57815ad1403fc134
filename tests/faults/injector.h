// Makes the Nth call of a kind fail: an allocation, or what the library asks of the file system.
//
// A program linked with it and with -Wl,--wrap for the functions below (BUILD.bazel) has every such call of our own
// code pass through here; operator new is replaced too, which also catches what libstdc++ allocates for us. Works
// beneath sanitizers, which wrap the real functions.
#pragma once

#include <cstdint>

namespace eliza::faults {

enum class Kind : int {
  kAllocate,  // malloc, calloc, realloc, operator new
  kOpen,      // open, fopen, opendir
  kRead,      // read, pread, fread, readdir: EIO
  kShrink,    // read, pread, fread: end of file, as from a file that becomes shorter
  kWrite,     // write: ENOSPC
  kSync,      // fsync: EIO
  kRename,    // rename: EACCES
  kStat,      // stat, lstat, fstat: EIO
  // No failures: what a program has to put up with.
  kInterrupt,   // open, opendir, read, pread, write, fsync: EINTR
  kShortWrite,  // write: half of it
};
constexpr int kKinds = 10;
const char* name(Kind kind);

// From here on the `nth` call of the kind (from 1) fails, and with `sticky` all after it as well.
void arm(Kind kind, int64_t nth, bool sticky);

// Nothing fails any more. True: something has failed since `arm`.
bool disarm();

// Calls count, and fail, only while one of these lives: those of the library, and not of the test around it.
class Inside {
 public:
  Inside();
  ~Inside();
};

// Nor do those that this thread makes while one of these lives: of code that is not ours.
class Outside {
 public:
  Outside();
  ~Outside();

 private:
  const bool before_;
};

// What `call` returns, with its calls counted.
template <typename Call>
auto inside(Call&& call) {
  const Inside counted;
  return call();
}

// Blocks allocated and not freed.
int64_t live_allocations();

// Files that were opened for programs of the host, too: without O_CLOEXEC.
int64_t inheritable_opens();

}  // namespace eliza::faults
