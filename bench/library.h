// The functions of the C ABI that benches time, out of a library named at run time: the one that is shipped, or one
// with a fake backend in it.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "native/include/eliza-inference-ffi.h"

namespace eliza::bench {

// Ends the program with a message: a bench has no caller to hand an error to.
[[noreturn]] inline void fail(const char* what, const char* reason) {
  std::fprintf(stderr, "%s: %s\n", what, reason != nullptr ? reason : "no reason given");
  std::exit(1);
}

class Library {
 public:
  explicit Library(const char* path) : handle_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) fail("dlopen", dlerror());
  }

  // The function of this name, of the type of `declaration`, which is never called.
  template <typename Function>
  Function* find(const char* name, Function* /*declaration*/) const {
    void* symbol = dlsym(handle_, name);
    if (symbol == nullptr) fail("dlsym", dlerror());
    return reinterpret_cast<Function*>(symbol);
  }

 private:
  void* handle_;
};

}  // namespace eliza::bench

// A function of `library`, with its type from the header.
#define ELIZA_BENCH_FUNCTION(library, name) (library).find(#name, static_cast<decltype(name)*>(nullptr))
