// Files that bytes of JavaScript's lie in, as native/mapped tells: one answer for all threads.
#pragma once

#include <atomic>

#include "../file-places.h"

namespace server {

inline std::atomic<file_places::Find> findPlace{nullptr};

// False: they lie in no file, or in none that is known here.
inline bool placeOf(const uint8_t* start, size_t length, file_places::Place* place) {
  file_places::Find find = findPlace.load(std::memory_order_acquire);
  return find != nullptr && find(start, length, place);
}

}  // namespace server
