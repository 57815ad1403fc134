// What `@available(macOS 15, *)` is compiled to. Apple's clang brings it along; LLVM as Linux distributions package it
// has no runtime library for macOS.

struct version {
  unsigned platform, number;
};

_Bool _availability_version_check(unsigned count, const struct version* versions);

__attribute__((visibility("hidden"))) int __isPlatformVersionAtLeast(unsigned platform, unsigned major, unsigned minor,
                                                                     unsigned patch) {
  struct version wanted = {platform, major << 16 | minor << 8 | patch};
  return _availability_version_check(1, &wanted);
}
