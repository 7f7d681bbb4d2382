// Who holds a lock in memory that threads share: the same numbers as src/admission/lock-holder.ts.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace server {

// The kernel's numbers of threads have so many bits; above them stand the lowest bits of the time at which the thread started.
constexpr int kThreadBits = 22, kStartBits = 9;

// The number under which a thread of this process holds locks. 0: there is no such thread any more. -1: it cannot be looked at, because
// no descriptor is free.
inline int32_t holderOf(int32_t thread) {
  char path[64], text[1024];
  snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? 0 : -1;
  ssize_t got = read(fd, text, sizeof(text) - 1);
  close(fd);
  // It ended meanwhile.
  if (got <= 0) return 0;
  text[got] = '\0';
  // The 22nd field (proc_pid_stat(5)); the second one stands in parentheses and may contain blanks.
  const char* at = strrchr(text, ')');
  for (int fields = 0; fields < 20 && at != nullptr; fields += 1) at = strchr(at + 1, ' ');
  if (at == nullptr) return 0;
  uint64_t started = strtoull(at + 1, nullptr, 10);
  return static_cast<int32_t>((started & ((1u << kStartBits) - 1)) << kThreadBits) | thread;
}

inline int32_t ownHolder() { return holderOf(static_cast<int32_t>(syscall(SYS_gettid))); }

// A thread of which nothing is known counts as alive: a lock that two hold is worse than one that is waited for.
inline bool isAlive(int32_t holder) {
  int32_t found = holderOf(holder & ((1 << kThreadBits) - 1));
  return found < 0 || found == holder;
}

}  // namespace server
