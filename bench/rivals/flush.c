/* Preloaded into servers that do not flush what they write: a file that was written is on the disk when it is closed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int close(int file) {
  static int (*next)(int);
  if (next == 0) next = (int (*)(int))dlsym(RTLD_NEXT, "close");
  int flags = fcntl(file, F_GETFL);
  struct stat about;
  if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && fstat(file, &about) == 0 && S_ISREG(about.st_mode))
    fdatasync(file);
  return next(file);
}
