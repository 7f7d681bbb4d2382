// Whether bytes of a mapping can be read without waiting for the disk.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace resident {

inline size_t pageSize() {
  static const size_t size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

// Asks the kernel (mincore) for each page of so many bytes. False where one is not in memory, or the kernel does not say: it tells of files
// only their owner and who may write to them.
inline bool isIn(const uint8_t* start, size_t length) {
  size_t page = pageSize();
  size_t before = reinterpret_cast<uintptr_t>(start) % page;
  uint8_t* at = const_cast<uint8_t*>(start) - before;
  unsigned char pages[1024];
  for (size_t left = length + before; left > 0;) {
    size_t part = left < sizeof(pages) * page ? left : sizeof(pages) * page;
    if (mincore(at, part, pages) != 0) return false;
    for (size_t each = 0; each < (part + page - 1) / page; each += 1) {
      if ((pages[each] & 1) == 0) return false;
    }
    at += part;
    left -= part;
  }
  return true;
}

// Asks the disk for these bytes, and does not wait for them.
inline void bringIn(const uint8_t* start, size_t length) {
  size_t before = reinterpret_cast<uintptr_t>(start) % pageSize();
  madvise(const_cast<uint8_t*>(start) - before, length + before, MADV_WILLNEED);
}

}  // namespace resident
