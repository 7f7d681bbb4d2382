// Signing (RFC 8032, 5.1.6). Whatever the secret is, the same steps are done and the same memory is touched: nothing branches on it,
// and nothing is looked up by it.
#pragma once

#include "curve.h"
#include "scalar.h"
#include "../hidden.h"
#include "../sha512.h"

namespace ed25519 {

using sha2::Sha512;

// A secret key, expanded: the number, what nonces are made with, and the public key.
struct Secret {
  uint8_t number[32];
  uint8_t prefix[32];
  uint8_t key[32];
};
static_assert(sizeof(Secret) == 96, "it is handed around as bytes");

// Two words that are taken at once.
typedef uint64_t Lane __attribute__((vector_size(16)));

inline void takeWhere(uint64_t mask, const Field& taken, Field& out) {
  for (int at = 0; at < 5; at += 1) out.limb[at] ^= mask & (out.limb[at] ^ taken.limb[at]);
}

inline void exchangeWhere(uint64_t mask, Field& one, Field& other) {
  for (int at = 0; at < 5; at += 1) {
    uint64_t difference = mask & (one.limb[at] ^ other.limb[at]);
    one.limb[at] ^= difference;
    other.limb[at] ^= difference;
  }
}

constexpr int kRows = 32;
constexpr int kColumns = 9;
constexpr int kNibbles = 64;
constexpr int kLanes = 8;

// Multiples of the base point: `entry_[row][column]` is column 256^row B, as the words of an AffineAddend and one more.
class BaseTable {
 public:
  explicit BaseTable(const Curve& curve) {
    Extended power = curve.basePoint();
    memset(entry_, 0, sizeof(entry_));
    for (auto& row : entry_) {
      Addend once = curve.addendOf(power);
      Extended multiple = {kZero, kOne, kOne, kZero};
      for (auto& each : row) {
        AffineAddend affine = curve.affineOf(multiple);
        memcpy(each, &affine, sizeof(affine));
        multiple = extendedOf(added(multiple, once, false));
      }
      for (int bit = 0; bit < 8; bit += 1) power = extendedOf(doubled(power.x, power.y, power.z));
    }
  }

  // The 32 bytes of number * B; the number is 32 bytes, below 2^255.
  void times(const uint8_t* number, uint8_t* out) const {
    // Digits of 4 bits from -8 to 8. Those at odd places are summed up first, and the sum is taken 16 times.
    int8_t digits[kNibbles];
    int carry = 0;
    for (int at = 0; at < kNibbles; at += 1) {
      int digit = (number[at / 2] >> (4 * (at % 2)) & 15) + carry;
      carry = at + 1 < kNibbles ? (digit + 8) >> 4 : 0;
      digits[at] = static_cast<int8_t>(digit - 16 * carry);
    }
    Extended sum = {kZero, kOne, kOne, kZero};
    for (int at = 1; at < kNibbles; at += 2) sum = plusEntry(sum, at / 2, digits[at]);
    for (int bit = 0; bit < 4; bit += 1) sum = extendedOf(doubled(sum.x, sum.y, sum.z));
    for (int at = 0; at < kNibbles; at += 2) sum = plusEntry(sum, at / 2, digits[at]);
    Field inverse = inverted(sum.z);
    uint8_t x[32];
    bytesOf(ed25519::times(sum.y, inverse), out);
    bytesOf(ed25519::times(sum.x, inverse), x);
    out[31] |= static_cast<uint8_t>((x[0] & 1) << 7);
    wipe(digits, sizeof(digits));
    wipe(&sum, sizeof(sum));
  }

 private:
  Extended plusEntry(const Extended& sum, int row, int8_t digit) const {
    uint64_t sign = static_cast<uint8_t>(digit) >> 7;
    uint64_t size = static_cast<uint64_t>((digit ^ -static_cast<int>(sign)) + static_cast<int>(sign));
    Lane lanes[kLanes] = {};
    for (int column = 0; column < kColumns; column += 1) {
      uint64_t mask = maskOf(isSame(size, static_cast<uint64_t>(column)));
      Lane both = {mask, mask};
      for (int at = 0; at < kLanes; at += 1) lanes[at] |= both & entry_[row][column][at];
    }
    AffineAddend chosen;
    memcpy(&chosen, lanes, sizeof(chosen));
    uint64_t negative = maskOf(sign);
    exchangeWhere(negative, chosen.sum, chosen.difference);
    takeWhere(negative, minusWide(kZero, chosen.t), chosen.t);
    return extendedOf(added(sum, chosen, false));
  }

  Lane entry_[kRows][kColumns][kLanes];
};
static_assert(sizeof(AffineAddend) <= kLanes * sizeof(Lane), "an entry holds it");

// The secret of a seed of 32 bytes.
inline void expand(const BaseTable& base, const uint8_t* seed, Secret& out) {
  uint8_t digest[Sha512::kDigest];
  Sha512().add(seed, 32).end(digest);
  digest[0] &= 0xf8;
  digest[31] = static_cast<uint8_t>((digest[31] & 0x7f) | 0x40);
  memcpy(out.number, digest, sizeof(out.number));
  memcpy(out.prefix, digest + 32, sizeof(out.prefix));
  base.times(out.number, out.key);
  wipe(digest, sizeof(digest));
}

// The 64 bytes of a signature.
inline void sign(const BaseTable& base, const Secret& secret, const uint8_t* message, size_t length, uint8_t* out) {
  uint8_t digest[Sha512::kDigest];
  Sha512 hiding;
  hiding.add(secret.prefix, sizeof(secret.prefix)).add(message, length).end(digest);
  uint64_t nonce[4];
  reduce(digest, nonce);
  uint8_t bytes[32];
  for (int at = 0; at < 32; at += 1) bytes[at] = static_cast<uint8_t>(nonce[at / 8] >> (8 * (at % 8)));
  base.times(bytes, out);
  uint8_t challengeHash[Sha512::kDigest];
  Sha512().add(out, 32).add(secret.key, sizeof(secret.key)).add(message, length).end(challengeHash);
  uint64_t challenge[4];
  reduce(challengeHash, challenge);
  uint64_t number[4];
  for (int at = 0; at < 4; at += 1) number[at] = wordAt(secret.number + 8 * at);
  timesPlus(challenge, number, nonce, out + 32);
  wipe(&hiding, sizeof(hiding));
  wipe(digest, sizeof(digest));
  wipe(nonce, sizeof(nonce));
  wipe(bytes, sizeof(bytes));
  wipe(number, sizeof(number));
}

}  // namespace ed25519
