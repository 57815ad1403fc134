/* Preloaded before a program: ends it when it opens a socket or starts a process, and notes every file that it opens to
 * write, a path a line, in the file that $WATCH names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void note(const char* path) {
  static int (*plain_open)(const char*, int, ...);
  if (plain_open == NULL) plain_open = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, "open");
  const char* const watch = getenv("WATCH");
  const int fd = watch == NULL ? -1 : plain_open(watch, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (fd < 0) abort();
  dprintf(fd, "%s\n", path);
  close(fd);
}

static int writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT) != 0; }

#define OPEN(name)                                                                       \
  int name(const char* path, int flags, ...) {                                           \
    va_list arguments;                                                                   \
    va_start(arguments, flags);                                                          \
    const int mode = (flags & O_CREAT) != 0 ? va_arg(arguments, int) : 0;                \
    va_end(arguments);                                                                   \
    if (writes(flags)) note(path);                                                       \
    return ((int (*)(const char*, int, ...))dlsym(RTLD_NEXT, #name))(path, flags, mode); \
  }
OPEN(open)
OPEN(open64)

#define FOPEN(name)                                                                      \
  FILE* name(const char* path, const char* mode) {                                       \
    if (strpbrk(mode, "wa+") != NULL) note(path);                                        \
    return ((FILE * (*)(const char*, const char*)) dlsym(RTLD_NEXT, #name))(path, mode); \
  }
FOPEN(fopen)
FOPEN(fopen64)

int mkdir(const char* path, mode_t mode) {
  note(path);
  return ((int (*)(const char*, mode_t))dlsym(RTLD_NEXT, "mkdir"))(path, mode);
}

int rename(const char* from, const char* to) {
  note(to);
  return ((int (*)(const char*, const char*))dlsym(RTLD_NEXT, "rename"))(from, to);
}

int socket(int domain, int type, int protocol) {
  (void)domain, (void)type, (void)protocol;
  abort();
}

int getaddrinfo(const char* node, const char* service, const void* hints, void* result) {
  (void)node, (void)service, (void)hints, (void)result;
  abort();
}

pid_t fork(void) { abort(); }
int system(const char* command) {
  (void)command;
  abort();
}
