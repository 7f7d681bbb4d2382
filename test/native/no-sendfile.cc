// For LD_PRELOAD: a system whose files cannot be sent by sendfile, as some file systems and sandboxes are.
#include <errno.h>
#include <sys/types.h>

extern "C" {
ssize_t sendfile(int, int, off_t*, size_t) {
  errno = EINVAL;
  return -1;
}
ssize_t sendfile64(int, int, off_t*, size_t) {
  errno = EINVAL;
  return -1;
}
}
