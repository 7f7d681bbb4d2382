// A key that native/ed25519 lends to native/server, which signs heads with it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "handed.h"
#include "hidden.h"

namespace borrowed_key {

constexpr size_t kSecret = 96;
constexpr size_t kSignature = 64;

// Fills in the signature.
using Sign = void (*)(const uint8_t* secret, const uint8_t* message, size_t length, uint8_t* signature);

// Whoever has one has a copy of the secret, which is wiped with it.
struct Key {
  Sign sign = nullptr;
  uint8_t secret[kSecret] = {};

  ~Key() { hidden::wipe(secret, sizeof(secret)); }
};

constexpr napi_type_tag kTag = {0x9b1f60d2c7a84e35, 0x86e4f1a9d35b7c02};

inline napi_value give(napi_env env, Key* key) {
  auto over = [](napi_env, void* data, void*) { delete static_cast<Key*>(data); };
  return handed::give(env, key, kTag, over);
}
inline Key* take(napi_env env, napi_value value) { return handed::take<Key>(env, value, kTag); }

}  // namespace borrowed_key
