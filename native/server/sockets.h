// How many accepted sockets all servers of this process have open together, and how many they may have: each is a descriptor,
// and a process without a free one can open no file. One count for all threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace server {

struct Sockets {
  std::atomic<size_t> open{0};
  std::atomic<size_t> max{SIZE_MAX};
  // Times that a server stopped accepting because of it, or because the system had no descriptor.
  std::atomic<size_t> pauses{0};

  bool claim() {
    if (open.fetch_add(1) < max.load()) return true;
    open.fetch_sub(1);
    return false;
  }
  void release() { open.fetch_sub(1); }
  bool full() const { return open.load() >= max.load(); }
  bool crowded() const { return open.load() > max.load() / 4 * 3; }
};

inline Sockets sockets;

}  // namespace server
