// ECDSA over secp256k1: verification, recovery of keys, signing. See README.md for why and how fast.
#if defined(__GNUC__) && !defined(__clang__)
// Stores of two limbs at once, of which one is loaded right after, cost a sixth of the time.
#pragma GCC optimize("no-tree-vectorize")
#endif
#include <node_api.h>

#include <cstdint>
#include <cstring>

#include "../calls.h"
#include "curve.h"
#include "signer.h"

namespace {

using namespace secp256k1;

constexpr size_t kKey = 65;
constexpr size_t kSignature = 64;
constexpr size_t kDigest = 32;
constexpr size_t kSecret = 32;
// Of an uncompressed key (SEC 1, 2.3.3).
constexpr uint8_t kUncompressed = 4;

// Made at the first use.
const BaseTable& baseTable() {
  static const BaseTable made;
  return made;
}

const SigningTable& signingTable() {
  static const SigningTable made;
  return made;
}

struct Signature {
  Number r, s;
};

// False unless both numbers are from 1 to n - 1, and s not above n / 2: the negative of s would be valid, too.
bool parse(const uint8_t* bytes, Signature& out) {
  out = {numberOf(bytes), numberOf(bytes + 32)};
  return !isZero(out.r) && isBelow(out.r, kOrder) && !isZero(out.s) && !isBelow(kHalfOrder, out.s);
}

bool parseKey(const uint8_t* bytes, Affine& out) {
  Number x = numberOf(bytes + 1);
  Number y = numberOf(bytes + 33);
  if (bytes[0] != kUncompressed || !isBelow(x, kPrime) || !isBelow(y, kPrime)) return false;
  out = {fieldOf(x), fieldOf(y)};
  return isSame(squared(out.y), curveOf(out.x));
}

// SEC 1, 4.1.4.
bool isValid(const Affine& key, const Signature& signature, const uint8_t* digest) {
  Number inverse = scalarInverted(signature.s);
  Number ofBase = scalarTimes(scalarOf(numberOf(digest)), inverse);
  Point found = combined(baseTable(), ofBase, scalarTimes(signature.r, inverse), key);
  if (isInfinite(found)) return false;
  // x = X / Z^2 modulo n is r: x is r, or r + n where that is below p.
  Field zz = squared(found.z);
  if (isSame(times(fieldOf(signature.r), zz), found.x)) return true;
  Number more;
  return add(signature.r, kOrder, more) == 0 && isBelow(more, kPrime) && isSame(times(fieldOf(more), zz), found.x);
}

// SEC 1, 4.1.6. `recovery`: bit 0 says that y is odd, bit 1 that x is r + n.
bool recoverKey(const Signature& signature, uint64_t recovery, const uint8_t* digest, uint8_t* out) {
  Number x = signature.r;
  if ((recovery & 2) != 0 && (add(signature.r, kOrder, x) != 0 || !isBelow(x, kPrime))) return false;
  Field square = curveOf(fieldOf(x));
  Affine point = {fieldOf(x), rooted(square)};
  if (!isSame(squared(point.y), square)) return false;
  if ((numberOf(point.y).word[0] & 1) != (recovery & 1)) point.y = negative(point.y);
  Number inverse = scalarInverted(signature.r);
  Number ofBase = scalarNegative(scalarTimes(scalarOf(numberOf(digest)), inverse));
  Point found = combined(baseTable(), ofBase, scalarTimes(signature.s, inverse), point);
  if (isInfinite(found)) return false;
  Affine key = affineOf(found);
  out[0] = kUncompressed;
  bytesOf(numberOf(key.x), out + 1);
  bytesOf(numberOf(key.y), out + 33);
  return true;
}

napi_value truthOf(napi_env env, bool value) {
  napi_value result;
  napi_get_boolean(env, value, &result);
  return result;
}

// The bytes of an argument that has one length.
Bytes exactly(Arguments& arguments, size_t index, size_t length) {
  Bytes bytes = arguments.bytes(index);
  if (arguments.good && bytes.length != length) arguments.wrong(index, "is not of its length", true);
  return bytes;
}

// isKey(key) -> boolean: whether it is a point of the curve, uncompressed.
napi_value isKey(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "isKey");
  Bytes key = exactly(arguments, 0, kKey);
  if (!arguments.good) return nullptr;
  Affine parsed{};
  return truthOf(env, parseKey(key.data, parsed));
}

// verify(key, signature, digest) -> boolean.
napi_value verify(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "verify");
  Bytes key = exactly(arguments, 0, kKey);
  Bytes signature = exactly(arguments, 1, kSignature);
  Bytes digest = exactly(arguments, 2, kDigest);
  if (!arguments.good) return nullptr;
  Affine point{};
  Signature numbers{};
  return truthOf(env, parseKey(key.data, point) && parse(signature.data, numbers) && isValid(point, numbers, digest.data));
}

// recover(signature, recovery, digest, key) -> boolean: writes the key.
napi_value recover(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "recover");
  Bytes signature = exactly(arguments, 0, kSignature);
  uint64_t recovery = arguments.integer(1, 0, 3);
  Bytes digest = exactly(arguments, 2, kDigest);
  Bytes key = exactly(arguments, 3, kKey);
  if (!arguments.good) return nullptr;
  Signature numbers{};
  return truthOf(env, parse(signature.data, numbers) && recoverKey(numbers, recovery, digest.data, key.data));
}

// sign(secret, digest, signature) -> boolean: writes r, s and the number for `recover`, 65 bytes; false where that is no secret.
napi_value sign(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "sign");
  Bytes secret = exactly(arguments, 0, kSecret);
  Bytes digest = exactly(arguments, 1, kDigest);
  Bytes signature = exactly(arguments, 2, kSignature + 1);
  if (!arguments.good) return nullptr;
  return truthOf(env, secp256k1::sign(signingTable(), secret.data, digest.data, signature.data));
}

}  // namespace

NAPI_MODULE_INIT() {
  return give(env, exports, {{"isKey", isKey}, {"verify", verify}, {"recover", recover}, {"sign", sign}});
}
