// Deep hashes of lists of blobs, over SHA-384 (src/proof/deep-hash.ts says what they are): a call for a whole list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "../sha512.h"

namespace deep {

using sha2::Sha384;
constexpr size_t kHash = Sha384::kDigest;

// acc = H(acc || H(H("blob" + length) || hash)), where `hash` is that of the blob's bytes.
inline void extend(uint8_t* acc, uint64_t length, const uint8_t* hash) {
  char words[32];
  int count = snprintf(words, sizeof(words), "blob%llu", static_cast<unsigned long long>(length));
  uint8_t head[kHash], blob[kHash];
  Sha384().add(reinterpret_cast<const uint8_t*>(words), static_cast<size_t>(count)).end(head);
  Sha384().add(head, kHash).add(hash, kHash).end(blob);
  Sha384().add(acc, kHash).add(blob, kHash).end(acc);
}

inline void extendBy(uint8_t* acc, const uint8_t* bytes, size_t length) {
  uint8_t hash[kHash];
  Sha384().add(bytes, length).end(hash);
  extend(acc, length, hash);
}

}  // namespace deep
