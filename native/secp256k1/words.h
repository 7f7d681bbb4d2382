// Numbers of 256 bits as four words of 64, the lowest first. The time that `isBelow` and `areEqual` take depends on the numbers:
// only public ones may be given to them.
#pragma once

#include <cstdint>
#include <cstring>

#include "../hidden.h"

namespace secp256k1 {

using Wide = unsigned __int128;

struct Number {
  uint64_t word[4];
};

constexpr Number kZero = {{0, 0, 0, 0}};
constexpr Number kOne = {{1, 0, 0, 0}};

// 32 bytes, the highest first.
inline Number numberOf(const uint8_t* bytes) {
  Number result;
  for (int at = 0; at < 4; at += 1) {
    uint64_t word = 0;
    for (int byte = 0; byte < 8; byte += 1) word = word << 8 | bytes[8 * (3 - at) + byte];
    result.word[at] = word;
  }
  return result;
}

inline void bytesOf(const Number& a, uint8_t* out) {
  for (int at = 0; at < 32; at += 1) out[at] = static_cast<uint8_t>(a.word[3 - at / 8] >> (56 - 8 * (at % 8)));
}

inline bool isZero(const Number& a) { return (a.word[0] | a.word[1] | a.word[2] | a.word[3]) == 0; }

inline bool isBelow(const Number& a, const Number& b) {
  for (int at = 3; at >= 0; at -= 1) {
    if (a.word[at] != b.word[at]) return a.word[at] < b.word[at];
  }
  return false;
}

inline bool areEqual(const Number& a, const Number& b) { return memcmp(a.word, b.word, sizeof(a.word)) == 0; }

// The sum modulo 2^256, and what goes over.
inline uint64_t add(const Number& a, const Number& b, Number& out) {
  Wide sum = 0;
  for (int at = 0; at < 4; at += 1) {
    sum += Wide{a.word[at]} + b.word[at];
    out.word[at] = static_cast<uint64_t>(sum);
    sum >>= 64;
  }
  return static_cast<uint64_t>(sum);
}

// The difference modulo 2^256; 1 where b is the larger one.
inline uint64_t subtract(const Number& a, const Number& b, Number& out) {
  uint64_t borrow = 0;
  for (int at = 0; at < 4; at += 1) {
    Wide difference = Wide{a.word[at]} - b.word[at] - borrow;
    out.word[at] = static_cast<uint64_t>(difference);
    borrow = static_cast<uint64_t>(difference >> 64) & 1;
  }
  return borrow;
}

// `taken` where the mask is all ones.
inline void takeWhere(uint64_t mask, const Number& taken, Number& out) {
  for (int at = 0; at < 4; at += 1) out.word[at] ^= mask & (out.word[at] ^ taken.word[at]);
}

// a - bound where that is not below zero: for numbers below twice the bound.
inline Number lessened(const Number& a, const Number& bound) {
  Number less;
  uint64_t isBelowBound = subtract(a, bound, less);
  takeWhere(hidden::maskOf(isBelowBound), a, less);
  return less;
}

// All eight words of the product.
inline void multiply(const Number& a, const Number& b, uint64_t* out) {
  uint64_t carry = 0;
  for (int at = 0; at < 4; at += 1) {
    Wide product = Wide{a.word[0]} * b.word[at] + carry;
    out[at] = static_cast<uint64_t>(product);
    carry = static_cast<uint64_t>(product >> 64);
  }
  out[4] = carry;
  for (int row = 1; row < 4; row += 1) {
    carry = 0;
    for (int at = 0; at < 4; at += 1) {
      Wide product = Wide{a.word[row]} * b.word[at] + out[row + at] + carry;
      out[row + at] = static_cast<uint64_t>(product);
      carry = static_cast<uint64_t>(product >> 64);
    }
    out[row + 4] = carry;
  }
}

}  // namespace secp256k1
