// Numbers modulo the order of the base point, L = 2^252 + 27742317777372353535851937790883648493 (RFC 8032, 5.1), as 32 bytes,
// little-endian.
#pragma once

#include <cstdint>
#include <cstring>

#include "field.h"
#include "../hidden.h"
#include "../scalar.h"

namespace ed25519 {

using hidden::isSame;
using hidden::maskOf;
using hidden::wipe;

// L in words of 64 bits, the lowest first.
constexpr uint64_t kOrder[4] = {0x5812631a5cf5d3ed, 0x14def9dea2f79cd6, 0, 0x1000000000000000};

// True for a number below L.
inline bool isReduced(const uint8_t* scalar) {
  for (int at = 3; at >= 0; at -= 1) {
    uint64_t word = wordAt(scalar + 8 * at);
    if (word != kOrder[at]) return word < kOrder[at];
  }
  return false;
}

// A number of 64 bytes modulo L, as four words. 32 bits a step, as one divides by hand. The same steps for all numbers.
inline void reduce(const uint8_t* number, uint64_t* out) {
  // Below L * 2^32 and so below 2^285 after each shift.
  uint64_t rest[5] = {0, 0, 0, 0, 0};
  for (int at = 60; at >= 0; at -= 4) {
    uint64_t next = static_cast<uint64_t>(number[at]) | static_cast<uint64_t>(number[at + 1]) << 8 |
                    static_cast<uint64_t>(number[at + 2]) << 16 | static_cast<uint64_t>(number[at + 3]) << 24;
    for (int word = 4; word > 0; word -= 1) rest[word] = rest[word] << 32 | rest[word - 1] >> 32;
    rest[0] = rest[0] << 32 | next;
    // L is a little more than 2^252: the quotient is this, or less by one.
    uint64_t quotient = rest[3] >> 60 | rest[4] << 4;
    uint64_t carry = 0;
    uint64_t borrow = 0;
    for (int word = 0; word < 5; word += 1) {
      Wide product = Wide{quotient} * (word < 4 ? kOrder[word] : 0) + carry;
      carry = static_cast<uint64_t>(product >> 64);
      Wide difference = Wide{rest[word]} - static_cast<uint64_t>(product) - borrow;
      rest[word] = static_cast<uint64_t>(difference);
      borrow = static_cast<uint64_t>(difference >> 64) & 1;
    }
    uint64_t mask = maskOf(borrow);
    carry = 0;
    for (int word = 0; word < 5; word += 1) {
      Wide sum = Wide{rest[word]} + (word < 4 ? mask & kOrder[word] : 0) + carry;
      rest[word] = static_cast<uint64_t>(sum);
      carry = static_cast<uint64_t>(sum >> 64);
    }
  }
  memcpy(out, rest, 4 * sizeof(uint64_t));
}

// (first * second + more) modulo L as 32 bytes. All are four words. The same steps for all numbers.
inline void timesPlus(const uint64_t* first, const uint64_t* second, const uint64_t* more, uint8_t* out) {
  uint64_t sum[8] = {more[0], more[1], more[2], more[3], 0, 0, 0, 0};
  for (int at = 0; at < 4; at += 1) {
    uint64_t carry = 0;
    for (int other = 0; other < 4; other += 1) {
      Wide part = Wide{first[at]} * second[other] + sum[at + other] + carry;
      sum[at + other] = static_cast<uint64_t>(part);
      carry = static_cast<uint64_t>(part >> 64);
    }
    sum[at + 4] = carry;
  }
  uint8_t bytes[64];
  for (int at = 0; at < 64; at += 1) bytes[at] = static_cast<uint8_t>(sum[at / 8] >> (8 * (at % 8)));
  uint64_t reduced[4];
  reduce(bytes, reduced);
  for (int at = 0; at < 32; at += 1) out[at] = static_cast<uint8_t>(reduced[at / 8] >> (8 * (at % 8)));
  wipe(sum, sizeof(sum));
  wipe(bytes, sizeof(bytes));
}

// Numbers are below 2^253.
constexpr int kDigits = 257;

}  // namespace ed25519
