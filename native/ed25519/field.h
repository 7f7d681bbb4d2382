// Numbers modulo p = 2^255 - 19 as five limbs of 51 bits (RFC 8032, 5.1). Everything but `areEqual` takes the same steps for all
// numbers, so that secrets may be given.
//
// Bounds of a limb, on which the sums of products below rely: a product leaves less than 2^51 + 2^17, `plus` of two products less
// than 2^52.1, `minus` less than 2^53.4, `minusWide` less than 2^54.4. The bounds of the two factors of a
// product must multiply to less than 2^108.4.
#pragma once

#include <cstdint>
#include <cstring>

namespace ed25519 {

using Wide = unsigned __int128;

struct Field {
  uint64_t limb[5];
};

constexpr uint64_t kLimbMask = (uint64_t{1} << 51) - 1;
constexpr Field kZero = {{0, 0, 0, 0, 0}};
constexpr Field kOne = {{1, 0, 0, 0, 0}};

inline Field plus(const Field& a, const Field& b) {
  Field sum;
  for (int at = 0; at < 5; at += 1) sum.limb[at] = a.limb[at] + b.limb[at];
  return sum;
}

// a - b + 2^bits * p / 2^51 for limbs of b up to 2^bits less a little: no limb falls below zero.
template <int bits>
inline Field minusBelow(const Field& a, const Field& b) {
  constexpr uint64_t lowest = (uint64_t{1} << bits) - (uint64_t{19} << (bits - 51));
  constexpr uint64_t others = (uint64_t{1} << bits) - (uint64_t{1} << (bits - 51));
  Field difference;
  difference.limb[0] = a.limb[0] + lowest - b.limb[0];
  for (int at = 1; at < 5; at += 1) difference.limb[at] = a.limb[at] + others - b.limb[at];
  return difference;
}

// `b`: a product or a sum of two.
inline Field minus(const Field& a, const Field& b) { return minusBelow<53>(a, b); }

// `b`: a difference, too.
inline Field minusWide(const Field& a, const Field& b) { return minusBelow<54>(a, b); }

// Carries the sums of products into limbs: all at once, and what is left once more, since a chain of carries would wait for each
// of them. What goes over the highest limb comes back times 19: 2^255 = 19 modulo p.
inline Field carried(Wide sum0, Wide sum1, Wide sum2, Wide sum3, Wide sum4) {
  uint64_t limb0 = (static_cast<uint64_t>(sum0) & kLimbMask) + 19 * static_cast<uint64_t>(sum4 >> 51);
  uint64_t limb1 = (static_cast<uint64_t>(sum1) & kLimbMask) + static_cast<uint64_t>(sum0 >> 51);
  uint64_t limb2 = (static_cast<uint64_t>(sum2) & kLimbMask) + static_cast<uint64_t>(sum1 >> 51);
  uint64_t limb3 = (static_cast<uint64_t>(sum3) & kLimbMask) + static_cast<uint64_t>(sum2 >> 51);
  uint64_t limb4 = (static_cast<uint64_t>(sum4) & kLimbMask) + static_cast<uint64_t>(sum3 >> 51);
  return {{
      (limb0 & kLimbMask) + 19 * (limb4 >> 51),
      (limb1 & kLimbMask) + (limb0 >> 51),
      (limb2 & kLimbMask) + (limb1 >> 51),
      (limb3 & kLimbMask) + (limb2 >> 51),
      (limb4 & kLimbMask) + (limb3 >> 51),
  }};
}

inline Field times(const Field& a, const Field& b) {
  uint64_t x0 = a.limb[0], x1 = a.limb[1], x2 = a.limb[2], x3 = a.limb[3], x4 = a.limb[4];
  uint64_t y0 = b.limb[0], y1 = b.limb[1], y2 = b.limb[2], y3 = b.limb[3], y4 = b.limb[4];
  uint64_t z1 = 19 * y1, z2 = 19 * y2, z3 = 19 * y3, z4 = 19 * y4;
  return carried(Wide{x0} * y0 + Wide{x1} * z4 + Wide{x2} * z3 + Wide{x3} * z2 + Wide{x4} * z1,
                 Wide{x0} * y1 + Wide{x1} * y0 + Wide{x2} * z4 + Wide{x3} * z3 + Wide{x4} * z2,
                 Wide{x0} * y2 + Wide{x1} * y1 + Wide{x2} * y0 + Wide{x3} * z4 + Wide{x4} * z3,
                 Wide{x0} * y3 + Wide{x1} * y2 + Wide{x2} * y1 + Wide{x3} * y0 + Wide{x4} * z4,
                 Wide{x0} * y4 + Wide{x1} * y3 + Wide{x2} * y2 + Wide{x3} * y1 + Wide{x4} * y0);
}

inline Field squared(const Field& a) {
  uint64_t x0 = a.limb[0], x1 = a.limb[1], x2 = a.limb[2], x3 = a.limb[3], x4 = a.limb[4];
  uint64_t twice0 = 2 * x0, twice1 = 2 * x1, twice2 = 2 * x2;
  uint64_t z3 = 19 * x3, z4 = 19 * x4;
  return carried(Wide{x0} * x0 + Wide{twice1} * z4 + Wide{twice2} * z3,
                 Wide{twice0} * x1 + Wide{twice2} * z4 + Wide{x3} * z3,
                 Wide{twice0} * x2 + Wide{x1} * x1 + Wide{2 * x3} * z4,
                 Wide{twice0} * x3 + Wide{twice1} * x2 + Wide{x4} * z4,
                 Wide{twice0} * x4 + Wide{twice1} * x3 + Wide{x2} * x2);
}

inline Field squaredTimes(Field a, int count) {
  for (int done = 0; done < count; done += 1) a = squared(a);
  return a;
}

// a^(2^250 - 1), and a^11 on the way: the exponents below begin with it.
inline Field power250(const Field& a, Field& power11) {
  Field two = squared(a);
  Field nine = times(squaredTimes(two, 2), a);
  power11 = times(nine, two);
  Field ones5 = times(squared(power11), nine);
  Field ones10 = times(squaredTimes(ones5, 5), ones5);
  Field ones20 = times(squaredTimes(ones10, 10), ones10);
  Field ones40 = times(squaredTimes(ones20, 20), ones20);
  Field ones50 = times(squaredTimes(ones40, 10), ones10);
  Field ones100 = times(squaredTimes(ones50, 50), ones50);
  Field ones200 = times(squaredTimes(ones100, 100), ones100);
  return times(squaredTimes(ones200, 50), ones50);
}

// a^(p - 2) = a^(2^255 - 21): the inverse; zero of zero.
inline Field inverted(const Field& a) {
  Field power11;
  return times(squaredTimes(power250(a, power11), 5), power11);
}

// a^((p - 5) / 8) = a^(2^252 - 3), of which square roots are made.
inline Field rootPower(const Field& a) {
  Field power11;
  return times(squaredTimes(power250(a, power11), 2), a);
}

inline uint64_t wordAt(const uint8_t* bytes) {
  // Little-endian on any machine.
  uint64_t word = 0;
  for (int at = 7; at >= 0; at -= 1) word = word << 8 | bytes[at];
  return word;
}

// 32 bytes, little-endian, without the highest bit. A number from p on stands for itself less p.
inline Field fieldOf(const uint8_t* bytes) {
  return {{
      wordAt(bytes) & kLimbMask,
      wordAt(bytes + 6) >> 3 & kLimbMask,
      wordAt(bytes + 12) >> 6 & kLimbMask,
      wordAt(bytes + 19) >> 1 & kLimbMask,
      wordAt(bytes + 24) >> 12 & kLimbMask,
  }};
}

// The one form below p, 32 bytes, little-endian.
inline void bytesOf(const Field& a, uint8_t* out) {
  uint64_t limb[5];
  memcpy(limb, a.limb, sizeof(limb));
  // Twice around brings each limb below 2^51, and so the number below 2^255.
  for (int round = 0; round < 2; round += 1) {
    for (int at = 0; at < 4; at += 1) {
      limb[at + 1] += limb[at] >> 51;
      limb[at] &= kLimbMask;
    }
    limb[0] += 19 * (limb[4] >> 51);
    limb[4] &= kLimbMask;
  }
  limb[1] += limb[0] >> 51;
  limb[0] &= kLimbMask;
  // p or more exactly where 19 more go over 2^255.
  uint64_t carry = 19;
  for (int at = 0; at < 5; at += 1) carry = (limb[at] + carry) >> 51;
  limb[0] += 19 * carry;
  for (int at = 0; at < 4; at += 1) {
    limb[at + 1] += limb[at] >> 51;
    limb[at] &= kLimbMask;
  }
  limb[4] &= kLimbMask;
  const uint64_t words[4] = {
      limb[0] | limb[1] << 51,
      limb[1] >> 13 | limb[2] << 38,
      limb[2] >> 26 | limb[3] << 25,
      limb[3] >> 39 | limb[4] << 12,
  };
  for (int at = 0; at < 32; at += 1) out[at] = static_cast<uint8_t>(words[at / 8] >> (8 * (at % 8)));
}

inline bool areEqual(const Field& a, const Field& b) {
  uint8_t one[32], other[32];
  bytesOf(a, one);
  bytesOf(b, other);
  return memcmp(one, other, sizeof(one)) == 0;
}

inline bool isOdd(const Field& a) {
  uint8_t bytes[32];
  bytesOf(a, bytes);
  return (bytes[0] & 1) != 0;
}

}  // namespace ed25519
