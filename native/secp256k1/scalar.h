// Numbers modulo the order n of the base point (SEC 2, 2.4.1), always below n.
#pragma once

#include "../scalar.h"
#include "words.h"

namespace secp256k1 {

constexpr Number kOrder = {{0xbfd25e8cd0364141, 0xbaaedce6af48a03b, 0xfffffffffffffffe, 0xffffffffffffffff}};
// 2^256 - n, of 129 bits.
constexpr Number kOrderFold = {{0x402da1732fc9bebf, 0x4551231950b75fc4, 1, 0}};
constexpr Number kHalfOrder = {{0xdfe92f46681b20a0, 0x5d576e7357a4501d, 0xffffffffffffffff, 0x7fffffffffffffff}};

inline Number scalarOf(const Number& a) { return lessened(a, kOrder); }

// a + over * 2^256 modulo n, for numbers below 2 n.
inline Number scalarOf(const Number& a, uint64_t over) {
  Number less;
  uint64_t isBelowOrder = subtract(a, kOrder, less);
  takeWhere(hidden::maskOf(isBelowOrder & (over ^ 1)), a, less);
  return less;
}

// The same steps for all numbers.
inline Number scalarPlus(const Number& a, const Number& b) {
  Number sum;
  uint64_t over = add(a, b, sum);
  return scalarOf(sum, over);
}

// The same steps for all numbers.
inline Number scalarTimes(const Number& a, const Number& b) {
  constexpr uint64_t low = kOrderFold.word[0], middle = kOrderFold.word[1];
  uint64_t word[8];
  multiply(a, b, word);
  // What lies above 2^256 is worth kOrderFold each, whose highest word is a one: 512 bits become 386, then 258, then below 2 n.
  // No sum goes over: `low` and `middle` together are below 0.6 * 2^64.
  Wide sum = Wide{word[4]} * low + word[0];
  uint64_t once0 = static_cast<uint64_t>(sum);
  sum = (sum >> 64) + word[1] + Wide{word[4]} * middle + Wide{word[5]} * low;
  uint64_t once1 = static_cast<uint64_t>(sum);
  sum = (sum >> 64) + word[2] + word[4] + Wide{word[5]} * middle + Wide{word[6]} * low;
  uint64_t once2 = static_cast<uint64_t>(sum);
  sum = (sum >> 64) + word[3] + word[5] + Wide{word[6]} * middle + Wide{word[7]} * low;
  uint64_t once3 = static_cast<uint64_t>(sum);
  sum = (sum >> 64) + word[6] + Wide{word[7]} * middle;
  uint64_t once4 = static_cast<uint64_t>(sum);
  sum = (sum >> 64) + word[7];
  uint64_t once5 = static_cast<uint64_t>(sum);
  uint64_t once6 = static_cast<uint64_t>(sum >> 64);

  sum = Wide{once4} * low + once0;
  uint64_t then0 = static_cast<uint64_t>(sum);
  sum = (sum >> 64) + once1 + Wide{once4} * middle + Wide{once5} * low;
  uint64_t then1 = static_cast<uint64_t>(sum);
  sum = (sum >> 64) + once2 + once4 + Wide{once5} * middle + Wide{once6} * low;
  uint64_t then2 = static_cast<uint64_t>(sum);
  sum = (sum >> 64) + once3 + once5 + Wide{once6} * middle;
  uint64_t then3 = static_cast<uint64_t>(sum);
  uint64_t then4 = static_cast<uint64_t>(sum >> 64) + once6;

  Number result;
  sum = Wide{then4} * low + then0;
  result.word[0] = static_cast<uint64_t>(sum);
  sum = (sum >> 64) + then1 + Wide{then4} * middle;
  result.word[1] = static_cast<uint64_t>(sum);
  sum = (sum >> 64) + then2 + then4;
  result.word[2] = static_cast<uint64_t>(sum);
  sum = (sum >> 64) + then3;
  result.word[3] = static_cast<uint64_t>(sum);
  return scalarOf(result, static_cast<uint64_t>(sum >> 64));
}

inline Number scalarNegative(const Number& a) {
  Number result;
  if (isZero(a)) return a;
  subtract(kOrder, a, result);
  return result;
}

// Half of a number modulo n.
inline Number scalarHalf(const Number& a) {
  uint64_t over = 0;
  Number sum = a;
  if ((a.word[0] & 1) != 0) over = add(a, kOrder, sum);
  for (int at = 0; at < 3; at += 1) sum.word[at] = sum.word[at] >> 1 | sum.word[at + 1] << 63;
  sum.word[3] = sum.word[3] >> 1 | over << 63;
  return sum;
}

inline Number scalarMinus(const Number& a, const Number& b) {
  Number difference;
  if (subtract(a, b, difference) != 0) add(difference, kOrder, difference);
  return difference;
}

// The inverse of a number from 1 on, by the binary method of Euclid: a * x = u and a * y = v modulo n all the time.
inline Number scalarInverted(const Number& a) {
  Number u = a, v = kOrder, x = kOne, y = kZero;
  const auto half = [](Number& number) {
    for (int at = 0; at < 3; at += 1) number.word[at] = number.word[at] >> 1 | number.word[at + 1] << 63;
    number.word[3] >>= 1;
  };
  for (;;) {
    for (; (u.word[0] & 1) == 0; half(u)) x = scalarHalf(x);
    for (; (v.word[0] & 1) == 0; half(v)) y = scalarHalf(y);
    if (areEqual(u, v)) return x;
    if (isBelow(v, u)) {
      subtract(u, v, u);
      x = scalarMinus(x, y);
    } else {
      subtract(v, u, v);
      y = scalarMinus(y, x);
    }
  }
}

constexpr int kDigits = 258;

}  // namespace secp256k1
