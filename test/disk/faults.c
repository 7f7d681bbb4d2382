// Loaded into a process by LD_PRELOAD: counts the calls that change files below a folder, and fails some of them. Tests alone use it.
//
// FAULTS_FOLDER   the folder; a call counts where its path, or the path of its descriptor, begins with that
// FAULTS_CONTROL  a file of 88 bytes outside of it, shared with the test: eleven numbers of 64 bits
//   0  calls so far                        4  bit n set: calls of kind n may fail (kinds below)
//   1  of so many calls one fails; 0 none  5  failures so far
//   2  chooses which, a seed               6  failures of this kind are left out of the log, 0 or 1
//   3  the errno                           7  calls are counted, but not failed, while this is not 0
//   8  this call alone fails, counted from 1; 0: as numbers 1 and 2 say
//   9  of writes only shorter ones fail; 0: all      10  nobody sleeps (nanosleep) while this is not 0
// FAULTS_LOG      lines are added: count, kind, errno, path
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum kind { kWrite, kSync, kSize, kCreate, kRename, kLink, kFolder };
static const char* const names[] = {"write", "sync", "size", "create", "rename", "link", "folder"};

static _Atomic uint64_t* control;
static char folder[PATH_MAX];
static size_t folder_length;
static int log_file = -1;

static int (*real_open)(const char*, int, ...);

__attribute__((constructor)) static void begin(void) {
  const char* path = getenv("FAULTS_CONTROL");
  const char* below = getenv("FAULTS_FOLDER");
  const char* log = getenv("FAULTS_LOG");
  real_open = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, "open64");
  if (path == NULL || below == NULL) return;
  int file = real_open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  void* mapped = mmap(NULL, 88, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (mapped == MAP_FAILED) return;
  folder_length = strlen(below);
  memcpy(folder, below, folder_length + 1);
  if (log != NULL) log_file = real_open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  control = mapped;
}

static int is_below(const char* path) { return strncmp(path, folder, folder_length) == 0; }

// Numbers that follow each other choose calls that have nothing to do with each other (splitmix64).
static uint64_t mixed(uint64_t at) {
  at += 0x9e3779b97f4a7c15u;
  at = (at ^ (at >> 30)) * 0xbf58476d1ce4e5b9u;
  at = (at ^ (at >> 27)) * 0x94d049bb133111ebu;
  return at ^ (at >> 31);
}

// True: the call is to fail, and errno is set.
static int fails(enum kind kind, const char* path) {
  if (control == NULL || !is_below(path)) return 0;
  const uint64_t count = atomic_fetch_add(&control[0], 1);
  const uint64_t every = control[1];
  const uint64_t alone = control[8];
  if (control[7] != 0) return 0;
  if (alone != 0 ? count + 1 != alone : every == 0 || mixed(count ^ mixed(control[2])) % every != 0) return 0;
  if ((control[4] & (1u << kind)) == 0) return 0;
  const int code = (int)control[3];
  atomic_fetch_add(&control[5], 1);
  if (log_file >= 0 && control[6] == 0) {
    char line[PATH_MAX + 64];
    int length = snprintf(line, sizeof line, "%llu %s %d %s\n", (unsigned long long)count, names[kind], code, path);
    ssize_t (*real)(int, const void*, size_t) = (ssize_t(*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write");
    if (real(log_file, line, (size_t)length) < 0) return 0;
  }
  errno = code;
  return 1;
}

static int fails_at(enum kind kind, int file) {
  if (control == NULL) return 0;
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return fails(kind, path);
}

static int fails_below(enum kind kind, int at, const char* path) {
  char whole[PATH_MAX];
  if (control == NULL) return 0;
  if (path[0] == '/' || at != AT_FDCWD) return fails(kind, path);
  if (getcwd(whole, sizeof whole) == NULL) return 0;
  const size_t length = strlen(whole);
  snprintf(whole + length, sizeof whole - length, "/%s", path);
  return fails(kind, whole);
}

#define REAL(name, result, ...)                                                        \
  static result (*real)(__VA_ARGS__);                                                  \
  if (real == NULL) real = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define ON_FILE(name, kind, result, call, ...)  \
  result name(__VA_ARGS__) {                    \
    REAL(#name, result, __VA_ARGS__);           \
    return fails_at(kind, file) ? -1 : real call; \
  }

ON_FILE(write, kWrite, ssize_t, (file, from, length), int file, const void* from, size_t length)
static int is_long(size_t length) { return control != NULL && control[9] != 0 && length >= control[9]; }

ssize_t pwrite(int file, const void* from, size_t length, off_t at) {
  REAL("pwrite", ssize_t, int, const void*, size_t, off_t);
  return !is_long(length) && fails_at(kWrite, file) ? -1 : real(file, from, length, at);
}
ssize_t pwrite64(int file, const void* from, size_t length, off64_t at) {
  REAL("pwrite64", ssize_t, int, const void*, size_t, off64_t);
  return !is_long(length) && fails_at(kWrite, file) ? -1 : real(file, from, length, at);
}
ssize_t writev(int file, const struct iovec* from, int count) {
  REAL("writev", ssize_t, int, const struct iovec*, int);
  size_t length = 0;
  for (int at = 0; at < count; at += 1) length += from[at].iov_len;
  return !is_long(length) && fails_at(kWrite, file) ? -1 : real(file, from, count);
}
int nanosleep(const struct timespec* rest, struct timespec* left) {
  REAL("nanosleep", int, const struct timespec*, struct timespec*);
  return control != NULL && control[10] != 0 ? 0 : real(rest, left);
}
ON_FILE(pwritev, kWrite, ssize_t, (file, from, count, at), int file, const struct iovec* from, int count, off_t at)
ON_FILE(pwritev64, kWrite, ssize_t, (file, from, count, at), int file, const struct iovec* from, int count, off64_t at)
ON_FILE(fsync, kSync, int, (file), int file)
ON_FILE(fdatasync, kSync, int, (file), int file)
ON_FILE(ftruncate, kSize, int, (file, length), int file, off_t length)
ON_FILE(ftruncate64, kSize, int, (file, length), int file, off64_t length)
ON_FILE(fallocate, kSize, int, (file, mode, at, length), int file, int mode, off_t at, off_t length)
ON_FILE(fallocate64, kSize, int, (file, mode, at, length), int file, int mode, off64_t at, off64_t length)

int posix_fallocate(int file, off_t at, off_t length) {
  REAL("posix_fallocate", int, int, off_t, off_t);
  return fails_at(kSize, file) ? errno : real(file, at, length);
}
int posix_fallocate64(int file, off64_t at, off64_t length) {
  REAL("posix_fallocate64", int, int, off64_t, off64_t);
  return fails_at(kSize, file) ? errno : real(file, at, length);
}

#define OPEN(name)                                                                       \
  int name(const char* path, int flags, ...) {                                           \
    REAL(#name, int, const char*, int, ...);                                             \
    va_list more;                                                                        \
    va_start(more, flags);                                                               \
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0; \
    va_end(more);                                                                        \
    if ((flags & O_CREAT) != 0 && fails_below(kCreate, AT_FDCWD, path)) return -1;       \
    return real(path, flags, mode);                                                      \
  }
OPEN(open)
OPEN(open64)

int rename(const char* from, const char* to) {
  REAL("rename", int, const char*, const char*);
  return fails_below(kRename, AT_FDCWD, to) ? -1 : real(from, to);
}
int link(const char* from, const char* to) {
  REAL("link", int, const char*, const char*);
  return fails_below(kLink, AT_FDCWD, to) ? -1 : real(from, to);
}
int mkdir(const char* path, mode_t mode) {
  REAL("mkdir", int, const char*, mode_t);
  return fails_below(kFolder, AT_FDCWD, path) ? -1 : real(path, mode);
}
