// SHA-256 (FIPS 180-4) and HMAC over it (RFC 2104): the same steps for all bytes of one length, so that secrets may be hashed.
#pragma once

#include "hidden.h"
#include "sha512.h"

namespace sha2 {

class Sha256 : public Blocks<Sha256, uint32_t, 32> {
  friend Blocks<Sha256, uint32_t, 32>;

 public:
  // The first 32 bits of the fractions that SHA-512 has 64 bits of.
  Sha256() {
    for (int at = 0; at < 8; at += 1) state_[at] = static_cast<uint32_t>(kStart512[at] >> 32);
  }

 private:
  static uint32_t rotated(uint32_t word, int bits) { return word >> bits | word << (32 - bits); }

  void mix() {
    uint32_t words[16];
    for (int at = 0; at < 16; at += 1) {
      words[at] = 0;
      for (int byte = 0; byte < 4; byte += 1) words[at] = words[at] << 8 | block_[4 * at + byte];
    }
    uint32_t a = state_[0], b = state_[1], c = state_[2], d = state_[3];
    uint32_t e = state_[4], f = state_[5], g = state_[6], h = state_[7];
#pragma GCC unroll 16
    for (int round = 0; round < 64; round += 1) {
      uint32_t& word = words[round % 16];
      if (round >= 16) {
        uint32_t early = words[(round + 1) % 16];
        uint32_t late = words[(round + 14) % 16];
        word += (rotated(early, 7) ^ rotated(early, 18) ^ early >> 3) + words[(round + 9) % 16] +
                (rotated(late, 17) ^ rotated(late, 19) ^ late >> 10);
      }
      uint32_t first = h + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + (g ^ (e & (f ^ g))) +
                       static_cast<uint32_t>(kRoundConstants[round] >> 32) + word;
      uint32_t second = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & b) | (c & (a | b)));
      h = g;
      g = f;
      f = e;
      e = d + first;
      d = c;
      c = b;
      b = a;
      a = first + second;
    }
    const uint32_t mixed[8] = {a, b, c, d, e, f, g, h};
    for (int at = 0; at < 8; at += 1) state_[at] += mixed[at];
  }
};

// By a key of 32 bytes.
class HmacSha256 {
 public:
  explicit HmacSha256(const uint8_t* key) {
    begin(key, 0x36, inner_);
    begin(key, 0x5c, outer_);
  }
  ~HmacSha256() { hidden::wipe(this, sizeof(*this)); }

  HmacSha256& add(const uint8_t* bytes, size_t length) {
    inner_.add(bytes, length);
    return *this;
  }

  // 32 bytes. Nothing may be added behind it.
  void end(uint8_t* digest) {
    inner_.end(digest);
    outer_.add(digest, Sha256::kDigest).end(digest);
  }

 private:
  static void begin(const uint8_t* key, uint8_t mask, Sha256& hash) {
    uint8_t block[Sha256::kBlock];
    memset(block, mask, sizeof(block));
    for (int at = 0; at < 32; at += 1) block[at] ^= key[at];
    hash.add(block, sizeof(block));
    hidden::wipe(block, sizeof(block));
  }

  Sha256 inner_, outer_;
};

}  // namespace sha2
