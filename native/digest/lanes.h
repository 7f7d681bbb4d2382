// Digests side by side: up to three of the same bytes, or two of different ones. One SHA alone waits for each of its rounds; the
// rounds of the others fit into the wait. Two SHA-256 of the same bytes share their message schedule as well, and so cost no more
// than one.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include "lanes-x86.h"
#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#include "lanes-arm.h"
#else
#define LANES_NONE
#endif

#ifdef LANES_NONE

namespace lanes {
inline bool able() { return false; }
template <bool, bool, bool>
void run(uint32_t*, uint32_t*, uint32_t*, const uint8_t*, size_t) {}
inline void runTwo(uint32_t*, uint32_t*, const uint8_t*, const uint8_t*, size_t) {}
}  // namespace lanes

#else

namespace lanes {

// FIPS 180-4, 4.2.2.
alignas(16) constexpr uint32_t constants256[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

struct Lanes {
  Sha256 whole, block;
  Words words256[4];
  Sha1 piece;
  Words words1[4];
};

// Which digests a run is of.
template <bool isWhole, bool isBlock, bool isPiece>
struct Of {
  template <int step>
  LANES_PART static void steps(Lanes& lanes) {
    if constexpr (isPiece) {
      Words* w = lanes.words1;
      lanes.piece.template rounds<step>(w[step & 3]);
      if constexpr (step < 16) {
        w[step & 3] = Sha1::next(w[step & 3], w[(step + 1) & 3], w[(step + 2) & 3], w[(step + 3) & 3]);
      }
    }
    if constexpr (isWhole && step < 16) {
      Words* w = lanes.words256;
      Words sums = add(w[step & 3], load(constants256 + 4 * step));
      lanes.whole.rounds(sums);
      if constexpr (isBlock) lanes.block.rounds(sums);
      if constexpr (step < 12) {
        w[step & 3] = Sha256::next(w[step & 3], w[(step + 1) & 3], w[(step + 2) & 3], w[(step + 3) & 3]);
      }
    }
    if constexpr (step + 1 < 20) steps<step + 1>(lanes);
  }
};

// Takes `count` times 64 bytes into the states of a SHA-256, of a second one, and of a SHA-1. Only where `able()`.
template <bool isWhole, bool isBlock, bool isPiece>
LANES_TARGET void run(uint32_t* whole, uint32_t* block, uint32_t* piece, const uint8_t* bytes, size_t count) {
  Lanes lanes;
  if constexpr (isWhole) lanes.whole.read(whole);
  if constexpr (isBlock) lanes.block.read(block);
  if constexpr (isPiece) lanes.piece.read(piece);
  for (; count > 0; count -= 1, bytes += 64) {
    const Sha256 whole_ = lanes.whole, block_ = lanes.block;
    const Sha1 piece_ = lanes.piece;
    for (int at = 0; at < 4; at += 1) {
      if constexpr (isWhole) lanes.words256[at] = Sha256::words(bytes + 16 * at);
      if constexpr (isPiece) lanes.words1[at] = Sha1::words(bytes + 16 * at);
    }
    Of<isWhole, isBlock, isPiece>::template steps<0>(lanes);
    if constexpr (isWhole) lanes.whole.join(whole_);
    if constexpr (isBlock) lanes.block.join(block_);
    if constexpr (isPiece) lanes.piece.join(piece_);
  }
  if constexpr (isWhole) lanes.whole.write(whole);
  if constexpr (isBlock) lanes.block.write(block);
  if constexpr (isPiece) lanes.piece.write(piece);
}

// Two SHA-256 of different bytes.
struct Two {
  Sha256 one, other;
  Words words[4], others[4];

  template <int step>
  LANES_PART void steps() {
    Words constants = load(constants256 + 4 * step);
    one.rounds(add(words[step & 3], constants));
    other.rounds(add(others[step & 3], constants));
    if constexpr (step < 12) {
      follow<step>(words);
      follow<step>(others);
    }
    if constexpr (step + 1 < 16) steps<step + 1>();
  }

  template <int step>
  LANES_PART static void follow(Words* w) {
    w[step & 3] = Sha256::next(w[step & 3], w[(step + 1) & 3], w[(step + 2) & 3], w[(step + 3) & 3]);
  }
};

// Takes `count` times 64 bytes of `bytes` into one state, and as many of `others` into the other. Only where `able()`.
LANES_TARGET inline void runTwo(uint32_t* one, uint32_t* other, const uint8_t* bytes, const uint8_t* others,
                                size_t count) {
  Two two;
  two.one.read(one);
  two.other.read(other);
  for (; count > 0; count -= 1, bytes += 64, others += 64) {
    const Sha256 one_ = two.one, other_ = two.other;
    for (int at = 0; at < 4; at += 1) {
      two.words[at] = Sha256::words(bytes + 16 * at);
      two.others[at] = Sha256::words(others + 16 * at);
    }
    two.steps<0>();
    two.one.join(one_);
    two.other.join(other_);
  }
  two.one.write(one);
  two.other.write(other);
}

}  // namespace lanes

#endif
