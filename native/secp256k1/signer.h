// Signing (SEC 1, 4.1.3) with nonces made of the secret and the digest (RFC 6979). Whatever the secret is, the same steps are done and
// the same memory is touched: nothing branches on it, and nothing is looked up by it.
#pragma once

#include "../hidden.h"
#include "../sha256.h"
#include "curve.h"

namespace secp256k1 {

using hidden::isSame;
using hidden::maskOf;
using hidden::disclosed;
using hidden::wipe;
using sha2::HmacSha256;

// 1 for numbers from 1 to n - 1.
inline uint64_t isScalar(const Number& a) {
  Number less;
  uint64_t words = a.word[0] | a.word[1] | a.word[2] | a.word[3];
  return subtract(a, kOrder, less) & (words | (0 - words)) >> 63;
}

// a^(n - 2), four bits of the exponent at a time. The inverse of a number from 1 on.
inline Number hiddenInverse(const Number& a) {
  Number exponent;
  subtract(kOrder, {{2, 0, 0, 0}}, exponent);
  Number powers[16] = {kOne, a};
  for (int at = 2; at < 16; at += 1) powers[at] = scalarTimes(powers[at - 1], a);
  Number result = kOne;
  for (int place = 252; place >= 0; place -= 4) {
    for (int bit = 0; bit < 4; bit += 1) result = scalarTimes(result, result);
    uint64_t digit = exponent.word[place / 64] >> place % 64 & 15;
    if (digit != 0) result = scalarTimes(result, powers[digit]);
  }
  wipe(powers, sizeof(powers));
  return result;
}

// x = X/Z, y = Y/Z. Limbs are below 2^53.6.
struct Projective {
  Field x, y, z;
};

// The sum by formulas without any exception (Renes, Costello, Batina, 2016, algorithm 8): also of equal and opposite points, and of
// infinity and another one. 21 is three times the 7 of the curve.
inline Projective summed(const Projective& a, const Affine& b) {
  const auto times21 = [](const Field& number) {
    Field product;
    for (int at = 0; at < 5; at += 1) product.limb[at] = 21 * number.limb[at];
    return settled(product);
  };
  Field xx = times(a.x, b.x);
  Field yy = times(a.y, b.y);
  Field xy = minus<54>(times(plus(a.x, a.y), plus(b.x, b.y)), plus(xx, yy));
  Field yz = plus(times(b.y, a.z), a.y);
  Field xz = times21(plus(times(b.x, a.z), a.x));
  Field zz = times21(a.z);
  Field more = plus(yy, zz);
  Field less = minus<53>(yy, zz);
  Field xx3 = plus(twice(xx), xx);
  return {minus<53>(times(xy, less), times(yz, xz)), plus(times(less, more), times(xz, xx3)),
          plus(times(more, yz), times(xx3, xy))};
}

constexpr int kRows = 64;
constexpr int kColumns = 8;

// Two words that are taken at once.
typedef uint64_t Lane __attribute__((vector_size(16)));
constexpr int kLanes = 5;
static_assert(sizeof(Affine) == kLanes * sizeof(Lane), "an entry is its words");

// Multiples of the base point: `entry_[row][column]` is (2 column + 1) 16^row of them.
class SigningTable {
 public:
  SigningTable() {
    Point power = {fieldOf(kBaseX), fieldOf(kBaseY), kFieldOne};
    for (auto& row : entry_) {
      Point two = doubled(power);
      Point multiple = power;
      for (auto& each : row) {
        Affine affine = affineOf(multiple);
        memcpy(each, &affine, sizeof(affine));
        multiple = added(multiple, two, false);
      }
      for (int bit = 0; bit < 4; bit += 1) power = doubled(power);
    }
  }

  // An odd number times the base point: its digits, from -15 to 15, are all odd, so that none is zero.
  Projective times(const Number& odd) const {
    uint64_t words[5] = {odd.word[0], odd.word[1], odd.word[2], odd.word[3], 1};
    Affine first = entryOf(words, 0);
    Projective sum = {first.x, first.y, kFieldOne};
    for (int row = 1; row < kRows; row += 1) sum = summed(sum, entryOf(words, row));
    wipe(words, sizeof(words));
    return sum;
  }

 private:
  Affine entryOf(const uint64_t* words, int row) const {
    // Four bits, and a one below them: what that is beyond 16 is the digit. So is the one above the last of them.
    int place = 4 * row + 1;
    uint64_t bits = words[place / 64] >> place % 64;
    if (place % 64 > 60) bits |= words[place / 64 + 1] << (64 - place % 64);
    uint64_t isNegative = (bits >> 3 & 1) ^ 1;
    uint64_t wanted = (bits ^ (0 - isNegative)) & 7;
    Lane lanes[kLanes] = {};
    for (int column = 0; column < kColumns; column += 1) {
      uint64_t mask = maskOf(isSame(wanted, static_cast<uint64_t>(column)));
      Lane both = {mask, mask};
      for (int at = 0; at < kLanes; at += 1) lanes[at] |= both & entry_[row][column][at];
    }
    Affine chosen;
    memcpy(&chosen, lanes, sizeof(chosen));
    Field opposite = negative(chosen.y);
    uint64_t mask = maskOf(isNegative);
    for (int at = 0; at < 5; at += 1) chosen.y.limb[at] ^= mask & (chosen.y.limb[at] ^ opposite.limb[at]);
    return chosen;
  }

  Lane entry_[kRows][kColumns][kLanes];
};

// Numbers for one secret and one digest, each to be used where the one before it does not do.
class Nonces {
 public:
  Nonces(const uint8_t* secret, const Number& digest) {
    uint8_t reduced[32];
    bytesOf(digest, reduced);
    memset(key_, 0, sizeof(key_));
    memset(value_, 1, sizeof(value_));
    for (uint8_t round = 0; round < 2; round += 1) {
      HmacSha256 hash(key_);
      hash.add(value_, 32).add(&round, 1).add(secret, 32).add(reduced, 32).end(key_);
      renew();
    }
  }
  ~Nonces() { wipe(this, sizeof(*this)); }

  // From 1 to n - 1.
  Number next() {
    for (;;) {
      if (isDrawn_) {
        const uint8_t zero = 0;
        HmacSha256(key_).add(value_, 32).add(&zero, 1).end(key_);
        renew();
      }
      isDrawn_ = true;
      renew();
      Number nonce = numberOf(value_);
      if (disclosed(isScalar(nonce))) return nonce;
    }
  }

 private:
  void renew() { HmacSha256(key_).add(value_, 32).end(value_); }

  uint8_t key_[32], value_[32];
  bool isDrawn_ = false;
};

// False where the secret, 32 bytes, is none. Writes r and s, s not above n / 2, and which of the keys that they could have been made
// by it is (as `recover` takes it): 65 bytes.
inline bool sign(const SigningTable& base, const uint8_t* secret, const uint8_t* digest, uint8_t* out) {
  Number key = numberOf(secret);
  if (!disclosed(isScalar(key))) return false;
  Number hashed = scalarOf(numberOf(digest));
  Nonces nonces(secret, hashed);
  for (;;) {
    // The opposite of an even number is odd, and its point has the same x.
    Number nonce = nonces.next();
    Number opposite;
    subtract(kOrder, nonce, opposite);
    takeWhere(maskOf((nonce.word[0] & 1) ^ 1), opposite, nonce);
    Projective point = base.times(nonce);
    Field inverse = inverted(point.z);
    Number x = numberOf(times(point.x, inverse));
    Number y = numberOf(times(point.y, inverse));
    Number r = scalarOf(x);
    Number less;
    uint64_t isOver = subtract(x, kOrder, less) ^ 1;
    Number s = scalarTimes(hiddenInverse(nonce), scalarPlus(hashed, scalarTimes(r, key)));
    uint64_t isGood = isScalar(r) & isScalar(s);
    subtract(kOrder, s, opposite);
    uint64_t isHigh = subtract(kHalfOrder, s, less);
    takeWhere(maskOf(isHigh), opposite, s);
    bytesOf(r, out);
    bytesOf(s, out + 32);
    out[64] = static_cast<uint8_t>(((y.word[0] & 1) ^ isHigh) | isOver << 1);
    wipe(&nonce, sizeof(nonce));
    wipe(&opposite, sizeof(opposite));
    wipe(&point, sizeof(point));
    if (disclosed(isGood)) break;
  }
  wipe(&key, sizeof(key));
  return true;
}

}  // namespace secp256k1
