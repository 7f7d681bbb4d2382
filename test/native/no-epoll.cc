// For LD_PRELOAD: a kernel that watches no more connections (ENOSPC) of the port in the environment variable UNWATCHED_PORT.
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace {

bool isUnwatched(int fd) {
  const char* port = getenv("UNWATCHED_PORT");
  sockaddr_in own = {}, other = {};
  socklen_t size = sizeof(own), otherSize = sizeof(other);
  if (port == nullptr || getpeername(fd, reinterpret_cast<sockaddr*>(&other), &otherSize) != 0) return false;
  return getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0 && ntohs(own.sin_port) == atoi(port);
}

}  // namespace

extern "C" int epoll_ctl(int epoll, int action, int fd, epoll_event* event) {
  static auto* next = reinterpret_cast<int (*)(int, int, int, epoll_event*)>(dlsym(RTLD_NEXT, "epoll_ctl"));
  if (action != EPOLL_CTL_ADD || !isUnwatched(fd)) return next(epoll, action, fd, event);
  errno = ENOSPC;
  return -1;
}
