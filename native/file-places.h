// In which file the bytes at an address lie: native/mapped knows it, and tells native/server, which then sends them from the file.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "handed.h"

namespace file_places {

struct Place {
  int fd;
  off_t offset;
};

// True where all these bytes lie in one mapped file that is kept open. `place` counts for as long as whoever asks holds the memory.
using Find = bool (*)(const uint8_t* start, size_t length, Place* place);

struct Finder {
  Find find;
};

constexpr napi_type_tag kTag = {0x5d0c1b7f94e24a61, 0xa3f8e27c6b10d945};

inline napi_value give(napi_env env, Finder* finder) { return handed::give(env, finder, kTag); }
inline Finder* take(napi_env env, napi_value value) { return handed::take<Finder>(env, value, kTag); }

}  // namespace file_places
