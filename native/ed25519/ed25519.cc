// Ed25519 signatures, checked and made. See README.md for why and how fast.
#if defined(__GNUC__) && !defined(__clang__)
// Loops over the limbs of a number must be unrolled: -O2 does not, and a signature takes a fifth longer. Stores of two limbs at once, of
// which one is loaded right after, cost a sixth of the time.
#pragma GCC optimize("O3", "no-tree-vectorize")
#endif
#include <errno.h>
#include <node_api.h>

#include <cstdint>
#include <cstring>
#include <memory>

#include "../calls.h"
#include "../borrowed-key.h"
#include "../sha512.h"
#include "curve.h"
#include "signer.h"

namespace {

using ed25519::Curve;
using sha2::Sha512;

constexpr size_t kKey = 32;
constexpr size_t kSignature = 64;
constexpr size_t kSeed = 32;
static_assert(sizeof(ed25519::Secret) == borrowed_key::kSecret, "it is given as it is");

// Made at the first use.
const Curve& curve() {
  static const Curve made;
  return made;
}

const ed25519::BaseTable& base() {
  static const ed25519::BaseTable made(curve());
  return made;
}

// R = s B - h A, compared by its bytes (RFC 8032, 5.1.7, without the cofactor, as OpenSSL does).
bool isValid(const uint8_t* key, const uint8_t* signature, const uint8_t* digest) {
  const uint8_t* s = signature + 32;
  if (!ed25519::isReduced(s)) return false;
  ed25519::Extended point{};
  if (!curve().decode(key, point)) return false;
  point.x = ed25519::times(ed25519::minusWide(ed25519::kZero, point.x), ed25519::kOne);
  point.t = ed25519::times(ed25519::minusWide(ed25519::kZero, point.t), ed25519::kOne);
  uint64_t challenge[4];
  ed25519::reduce(digest, challenge);
  uint64_t ofBase[4];
  for (int at = 0; at < 4; at += 1) ofBase[at] = ed25519::wordAt(s + 8 * at);
  uint8_t found[32];
  curve().combine(challenge, point, ofBase, found);
  return memcmp(found, signature, sizeof(found)) == 0;
}

// verify(key, signature, message) -> boolean.
napi_value verify(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "verify");
  Bytes key = arguments.bytes(0);
  Bytes signature = arguments.bytes(1);
  Bytes message = arguments.bytes(2);
  if (!arguments.good) return nullptr;
  if (key.length != kKey) return arguments.wrong(0, "is not of 32 bytes", true), nullptr;
  if (signature.length != kSignature) return arguments.wrong(1, "is not of 64 bytes", true), nullptr;
  // Of R, the key and the message (RFC 8032, 5.1.7).
  uint8_t digest[Sha512::kDigest];
  Sha512().add(signature.data, 32).add(key.data, kKey).add(message.data, message.length).end(digest);
  napi_value result;
  napi_get_boolean(env, isValid(key.data, signature.data, digest), &result);
  return result;
}

// expand(seed, secret): fills in the 96 bytes of the secret: number, prefix of nonces, public key.
napi_value expand(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "expand");
  Bytes seed = arguments.bytes(0);
  Bytes secret = arguments.bytes(1);
  if (!arguments.good) return nullptr;
  if (seed.length != kSeed) return arguments.wrong(0, "is not of 32 bytes", true), nullptr;
  if (secret.length != sizeof(ed25519::Secret)) return arguments.wrong(1, "is not of 96 bytes", true), nullptr;
  ed25519::Secret made;
  ed25519::expand(base(), seed.data, made);
  memcpy(secret.data, &made, sizeof(made));
  ed25519::wipe(&made, sizeof(made));
  return nullptr;
}

// sign(secret, message, signature): fills in the 64 bytes of the signature.
napi_value sign(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "sign");
  Bytes given = arguments.bytes(0);
  Bytes message = arguments.bytes(1);
  Bytes signature = arguments.bytes(2);
  if (!arguments.good) return nullptr;
  if (given.length != sizeof(ed25519::Secret)) return arguments.wrong(0, "is not of 96 bytes", true), nullptr;
  if (signature.length != kSignature) return arguments.wrong(2, "is not of 64 bytes", true), nullptr;
  ed25519::Secret secret;
  memcpy(&secret, given.data, sizeof(secret));
  // Not into the caller's memory at once, which may be that of the message.
  uint8_t made[kSignature];
  ed25519::sign(base(), secret, message.data, message.length, made);
  memcpy(signature.data, made, sizeof(made));
  ed25519::wipe(&secret, sizeof(secret));
  return nullptr;
}

void signBorrowed(const uint8_t* given, const uint8_t* message, size_t length, uint8_t* signature) {
  ed25519::Secret secret;
  memcpy(&secret, given, sizeof(secret));
  ed25519::sign(base(), secret, message, length, signature);
  ed25519::wipe(&secret, sizeof(secret));
}

// lend(secret) -> what native/server signs with: a copy of the secret.
napi_value lend(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "lend");
  Bytes secret = arguments.bytes(0);
  if (!arguments.good) return nullptr;
  if (secret.length != sizeof(ed25519::Secret)) return arguments.wrong(0, "is not of 96 bytes", true), nullptr;
  auto key = std::make_unique<borrowed_key::Key>();
  key->sign = signBorrowed;
  memcpy(key->secret, secret.data, sizeof(key->secret));
  napi_value result = borrowed_key::give(env, key.get());
  if (result == nullptr) return fail(env, "lend", EINVAL);
  key.release();
  return result;
}

}  // namespace

NAPI_MODULE_INIT() { return give(env, exports, {{"verify", verify}, {"expand", expand}, {"sign", sign}, {"lend", lend}}); }
