// Memory that bodies of cached answers lie in, and what is believed of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../resident.h"

namespace server {

// Numbers of JavaScript's (src/store/residence.ts).
enum Tick { kNow, kLasting, kTickNumbers };

struct Region {
  const uint8_t* memory;
  size_t length;
  // For each cell of so many bytes: the tick until which they are believed to be in memory.
  int32_t* here;
  size_t cellBytes;
  // The present tick, and how many a belief lasts.
  const int32_t* ticks;
  uint64_t serial;
  // Once closed, no cache entry out of it is used. Its place is free when nothing is kept for it any more.
  bool open, kept;
  // The same for all threads that have the same bytes in memory; 0: nobody else does.
  uint64_t key;
  // Answers whose clients have not taken all that comes out of it: the memory must stay for so long.
  size_t sending = 0;

  // Whether these bytes can be read without waiting for the disk. The kernel is queried where nothing is believed of them any more.
  bool isHere(size_t start, size_t end) const {
    int32_t now = __atomic_load_n(ticks + kNow, __ATOMIC_RELAXED);
    size_t first = start / cellBytes, last = (end - 1) / cellBytes;
    size_t at = first;
    while (at <= last && __atomic_load_n(here + at, __ATOMIC_RELAXED) > now) at += 1;
    if (at > last) return true;
    size_t from = first * cellBytes, to = (last + 1) * cellBytes;
    if (to > length) to = length;
    // What lies around them in their cells may not be there.
    if (!resident::isIn(memory + from, to - from)) return resident::isIn(memory + start, end - start);
    int32_t until = now + __atomic_load_n(ticks + kLasting, __ATOMIC_RELAXED);
    for (at = first; at <= last; at += 1) __atomic_store_n(here + at, until, __ATOMIC_RELAXED);
    return true;
  }
};

}  // namespace server
