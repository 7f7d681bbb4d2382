// In which file the bytes at an address lie: native/mapped knows it, and tells native/server, which then sends them from the file.
// An addon has no other way to another one's functions than through JavaScript, so the function goes there as a tagged object.
#pragma once

#include <node_api.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace file_places {

struct Place {
  int fd;
  off_t offset;
};

// True where all these bytes lie in one mapped file that is kept open. `place` counts for as long as whoever asks holds the memory.
using Find = bool (*)(const uint8_t* start, size_t length, Place* place);

struct Told {
  Find find;
};

// Only what has this tag was made by `give`; it changes with `Told`.
constexpr napi_type_tag kTag = {0x5d0c1b7f94e24a61, 0xa3f8e27c6b10d945};

// An object for `take`. `told` must outlive it.
inline napi_value give(napi_env env, Told* told) {
  napi_value object = nullptr;
  napi_create_object(env, &object);
  bool isGood = napi_wrap(env, object, told, nullptr, nullptr, nullptr) == napi_ok && napi_type_tag_object(env, object, &kTag) == napi_ok;
  return isGood ? object : nullptr;
}

// Null where `value` was not made by `give`.
inline Told* take(napi_env env, napi_value value) {
  bool isOurs = false;
  void* told = nullptr;
  if (napi_check_object_type_tag(env, value, &kTag, &isOurs) != napi_ok || !isOurs) return nullptr;
  return napi_unwrap(env, value, &told) == napi_ok ? static_cast<Told*>(told) : nullptr;
}

}  // namespace file_places
