// Numbers modulo p = 2^256 - 2^32 - 977 (SEC 2, 2.4.1) as five limbs of 52 bits.
//
// Bounds of a limb, on which the sums of products below rely: `times`, `squared` and `settled` leave less than 2^52 + 2^47, `plus`
// the sum of both bounds, `minus<bits>` less than the bound of `a` and 2^bits more. A product takes limbs below 2^55.
#pragma once

#include "words.h"

namespace secp256k1 {

struct Field {
  uint64_t limb[5];
};

constexpr uint64_t kLimbMask = (uint64_t{1} << 52) - 1;
// 2^256 = 2^32 + 977 modulo p, and so 2^260 is this.
constexpr uint64_t kShort = 0x1000003d1;
constexpr uint64_t kFold = kShort << 4;
constexpr Number kPrime = {{0xfffffffefffffc2f, 0xffffffffffffffff, 0xffffffffffffffff, 0xffffffffffffffff}};
constexpr Field kFieldZero = {{0, 0, 0, 0, 0}};
constexpr Field kFieldOne = {{1, 0, 0, 0, 0}};

inline Field fieldOf(const Number& a) {
  const uint64_t* word = a.word;
  return {{
      word[0] & kLimbMask,
      (word[0] >> 52 | word[1] << 12) & kLimbMask,
      (word[1] >> 40 | word[2] << 24) & kLimbMask,
      (word[2] >> 28 | word[3] << 36) & kLimbMask,
      word[3] >> 16,
  }};
}

// The one form below p.
inline Number numberOf(const Field& a) {
  uint64_t limb[5];
  memcpy(limb, a.limb, sizeof(limb));
  // Twice around brings each limb below its bits, and so the number below 2^256.
  for (int round = 0; round < 2; round += 1) {
    limb[0] += (limb[4] >> 48) * kShort;
    limb[4] &= kLimbMask >> 4;
    for (int at = 0; at < 4; at += 1) {
      limb[at + 1] += limb[at] >> 52;
      limb[at] &= kLimbMask;
    }
  }
  limb[0] += (limb[4] >> 48) * kShort;
  limb[4] &= kLimbMask >> 4;
  for (int at = 0; at < 4; at += 1) {
    limb[at + 1] += limb[at] >> 52;
    limb[at] &= kLimbMask;
  }
  Number number = {{limb[0] | limb[1] << 52, limb[1] >> 12 | limb[2] << 40, limb[2] >> 24 | limb[3] << 28,
                    limb[3] >> 36 | limb[4] << 16}};
  return lessened(number, kPrime);
}

inline Field plus(const Field& a, const Field& b) {
  Field sum;
  for (int at = 0; at < 5; at += 1) sum.limb[at] = a.limb[at] + b.limb[at];
  return sum;
}

inline Field twice(const Field& a) { return plus(a, a); }

// a - b + 2^(bits - 48) p, for limbs of b below 2^bits by 2^43 at least: no limb falls below zero.
template <int bits>
inline Field minus(const Field& a, const Field& b) {
  constexpr uint64_t lowest = (uint64_t{1} << bits) - (kFold << (bits - 52));
  constexpr uint64_t others = (uint64_t{1} << bits) - (uint64_t{1} << (bits - 52));
  Field difference;
  difference.limb[0] = a.limb[0] + lowest - b.limb[0];
  for (int at = 1; at < 5; at += 1) difference.limb[at] = a.limb[at] + others - b.limb[at];
  return difference;
}

// The same number in limbs of 52 bits and a little. What goes over the highest limb comes back times kFold.
inline Field settled(const Field& a) {
  const uint64_t* limb = a.limb;
  Field first = {{
      (limb[0] & kLimbMask) + (limb[4] >> 52) * kFold,
      (limb[1] & kLimbMask) + (limb[0] >> 52),
      (limb[2] & kLimbMask) + (limb[1] >> 52),
      (limb[3] & kLimbMask) + (limb[2] >> 52),
      (limb[4] & kLimbMask) + (limb[3] >> 52),
  }};
  return first;
}

// Nine sums of products, of which the highest four come back times kFold.
inline Field carried(Wide sum0, Wide sum1, Wide sum2, Wide sum3, Wide sum4, Wide sum5, Wide sum6, Wide sum7, Wide sum8) {
  sum6 += static_cast<uint64_t>(sum5 >> 52);
  sum7 += static_cast<uint64_t>(sum6 >> 52);
  sum8 += static_cast<uint64_t>(sum7 >> 52);
  sum0 += Wide{static_cast<uint64_t>(sum5) & kLimbMask} * kFold;
  sum1 += Wide{static_cast<uint64_t>(sum6) & kLimbMask} * kFold;
  sum2 += Wide{static_cast<uint64_t>(sum7) & kLimbMask} * kFold;
  sum3 += Wide{static_cast<uint64_t>(sum8) & kLimbMask} * kFold;
  sum4 += Wide{static_cast<uint64_t>(sum8 >> 52)} * kFold;
  sum0 += Wide{static_cast<uint64_t>(sum4 >> 52)} * kFold;
  uint64_t limb0 = static_cast<uint64_t>(sum0) & kLimbMask;
  uint64_t limb1 = (static_cast<uint64_t>(sum1) & kLimbMask) + static_cast<uint64_t>(sum0 >> 52);
  uint64_t limb2 = (static_cast<uint64_t>(sum2) & kLimbMask) + static_cast<uint64_t>(sum1 >> 52);
  uint64_t limb3 = (static_cast<uint64_t>(sum3) & kLimbMask) + static_cast<uint64_t>(sum2 >> 52);
  uint64_t limb4 = (static_cast<uint64_t>(sum4) & kLimbMask) + static_cast<uint64_t>(sum3 >> 52);
  // The highest limb goes over by less than 2^10, and so the lowest one by less than 2^47.
  return {{
      limb0 + (limb4 >> 52) * kFold,
      limb1 & kLimbMask,
      (limb2 & kLimbMask) + (limb1 >> 52),
      (limb3 & kLimbMask) + (limb2 >> 52),
      (limb4 & kLimbMask) + (limb3 >> 52),
  }};
}

inline Field times(const Field& a, const Field& b) {
  uint64_t x0 = a.limb[0], x1 = a.limb[1], x2 = a.limb[2], x3 = a.limb[3], x4 = a.limb[4];
  uint64_t y0 = b.limb[0], y1 = b.limb[1], y2 = b.limb[2], y3 = b.limb[3], y4 = b.limb[4];
  return carried(Wide{x0} * y0, Wide{x0} * y1 + Wide{x1} * y0, Wide{x0} * y2 + Wide{x1} * y1 + Wide{x2} * y0,
                 Wide{x0} * y3 + Wide{x1} * y2 + Wide{x2} * y1 + Wide{x3} * y0,
                 Wide{x0} * y4 + Wide{x1} * y3 + Wide{x2} * y2 + Wide{x3} * y1 + Wide{x4} * y0,
                 Wide{x1} * y4 + Wide{x2} * y3 + Wide{x3} * y2 + Wide{x4} * y1,
                 Wide{x2} * y4 + Wide{x3} * y3 + Wide{x4} * y2, Wide{x3} * y4 + Wide{x4} * y3, Wide{x4} * y4);
}

inline Field squared(const Field& a) {
  uint64_t x0 = a.limb[0], x1 = a.limb[1], x2 = a.limb[2], x3 = a.limb[3], x4 = a.limb[4];
  uint64_t twice0 = 2 * x0, twice1 = 2 * x1, twice2 = 2 * x2, twice3 = 2 * x3;
  return carried(Wide{x0} * x0, Wide{twice0} * x1, Wide{twice0} * x2 + Wide{x1} * x1,
                 Wide{twice0} * x3 + Wide{twice1} * x2, Wide{twice0} * x4 + Wide{twice1} * x3 + Wide{x2} * x2,
                 Wide{twice1} * x4 + Wide{twice2} * x3, Wide{twice2} * x4 + Wide{x3} * x3, Wide{twice3} * x4,
                 Wide{x4} * x4);
}

inline Field squaredTimes(Field a, int count) {
  for (int done = 0; done < count; done += 1) a = squared(a);
  return a;
}

// a^(2^223 - 1), with a^(2^22 - 1), a^(2^2 - 1) on the way: p - 2 and (p + 1) / 4 begin with them.
struct Powers {
  Field ones2, ones22, ones223;
};

inline Powers powersOf(const Field& a) {
  Field ones2 = times(squared(a), a);
  Field ones3 = times(squared(ones2), a);
  Field ones6 = times(squaredTimes(ones3, 3), ones3);
  Field ones9 = times(squaredTimes(ones6, 3), ones3);
  Field ones11 = times(squaredTimes(ones9, 2), ones2);
  Field ones22 = times(squaredTimes(ones11, 11), ones11);
  Field ones44 = times(squaredTimes(ones22, 22), ones22);
  Field ones88 = times(squaredTimes(ones44, 44), ones44);
  Field ones176 = times(squaredTimes(ones88, 88), ones88);
  Field ones220 = times(squaredTimes(ones176, 44), ones44);
  return {ones2, ones22, times(squaredTimes(ones220, 3), ones3)};
}

// a^(p - 2): 223 ones, a zero, 22 ones, 0000101101. Zero of zero.
inline Field inverted(const Field& a) {
  Powers known = powersOf(a);
  Field result = times(squaredTimes(known.ones223, 23), known.ones22);
  result = times(squaredTimes(result, 5), a);
  result = times(squaredTimes(result, 3), known.ones2);
  return times(squaredTimes(result, 2), a);
}

// a^((p + 1) / 4): 223 ones, a zero, 22 ones, 00001100. A root of a, where there is one.
inline Field rooted(const Field& a) {
  Powers known = powersOf(a);
  Field result = times(squaredTimes(known.ones223, 23), known.ones22);
  result = times(squaredTimes(result, 6), known.ones2);
  return squaredTimes(result, 2);
}

inline bool isSame(const Field& a, const Field& b) { return areEqual(numberOf(a), numberOf(b)); }
inline bool isNothing(const Field& a) { return isZero(numberOf(a)); }

}  // namespace secp256k1
