// SHA-512 and SHA-384 (FIPS 180-4): the same steps for all bytes of one length, so that secrets may be hashed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sha2 {

// The first 64 bits of the fractions of the square roots of the first eight primes.
constexpr uint64_t kStart512[8] = {
    0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
};

// And of the ninth to sixteenth.
constexpr uint64_t kStart384[8] = {
    0xcbbb9d5dc1059ed8, 0x629a292a367cd507, 0x9159015a3070dd17, 0x152fecd8f70e5939,
    0x67332667ffc00b31, 0x8eb44a8768581511, 0xdb0c2e0d64f98fa7, 0x47b5481dbefa4fa4,
};

// And of the cube roots of the first eighty.
constexpr uint64_t kRoundConstants[80] = {
    0x428a2f98d728ae22, 0x7137449123ef65cd, 0xb5c0fbcfec4d3b2f, 0xe9b5dba58189dbbc,
    0x3956c25bf348b538, 0x59f111f1b605d019, 0x923f82a4af194f9b, 0xab1c5ed5da6d8118,
    0xd807aa98a3030242, 0x12835b0145706fbe, 0x243185be4ee4b28c, 0x550c7dc3d5ffb4e2,
    0x72be5d74f27b896f, 0x80deb1fe3b1696b1, 0x9bdc06a725c71235, 0xc19bf174cf692694,
    0xe49b69c19ef14ad2, 0xefbe4786384f25e3, 0x0fc19dc68b8cd5b5, 0x240ca1cc77ac9c65,
    0x2de92c6f592b0275, 0x4a7484aa6ea6e483, 0x5cb0a9dcbd41fbd4, 0x76f988da831153b5,
    0x983e5152ee66dfab, 0xa831c66d2db43210, 0xb00327c898fb213f, 0xbf597fc7beef0ee4,
    0xc6e00bf33da88fc2, 0xd5a79147930aa725, 0x06ca6351e003826f, 0x142929670a0e6e70,
    0x27b70a8546d22ffc, 0x2e1b21385c26c926, 0x4d2c6dfc5ac42aed, 0x53380d139d95b3df,
    0x650a73548baf63de, 0x766a0abb3c77b2a8, 0x81c2c92e47edaee6, 0x92722c851482353b,
    0xa2bfe8a14cf10364, 0xa81a664bbc423001, 0xc24b8b70d0f89791, 0xc76c51a30654be30,
    0xd192e819d6ef5218, 0xd69906245565a910, 0xf40e35855771202a, 0x106aa07032bbd1b8,
    0x19a4c116b8d2d0c8, 0x1e376c085141ab53, 0x2748774cdf8eeb99, 0x34b0bcb5e19b48a8,
    0x391c0cb3c5c95a63, 0x4ed8aa4ae3418acb, 0x5b9cca4f7763e373, 0x682e6ff3d6b2b8a3,
    0x748f82ee5defb2fc, 0x78a5636f43172f60, 0x84c87814a1f0ab72, 0x8cc702081a6439ec,
    0x90befffa23631e28, 0xa4506cebde82bde9, 0xbef9a3f7b2c67915, 0xc67178f2e372532b,
    0xca273eceea26619c, 0xd186b8c721c0c207, 0xeada7dd6cde0eb1e, 0xf57d4f7fee6ed178,
    0x06f067aa72176fba, 0x0a637dc5a2c898a6, 0x113f9804bef90dae, 0x1b710b35131c471b,
    0x28db77f523047d84, 0x32caab7b40c72493, 0x3c9ebe0a15c9bebc, 0x431d67c49c100d4c,
    0x4cc5d4becb3e42b6, 0x597f299cfc657e2a, 0x5fcb6fab3ad6faec, 0x6c44198c4a475817,
};

inline uint64_t rotated(uint64_t word, int bits) { return word >> bits | word << (64 - bits); }

// What all of SHA-2 has: blocks of 16 words, a state of eight, and the length behind the last byte. `Hash` starts the state, and
// its `mix` takes the block into it.
template <typename Hash, typename Word, size_t digestBytes>
class Blocks {
 public:
  static constexpr size_t kDigest = digestBytes;
  static constexpr size_t kBlock = 16 * sizeof(Word);

  Hash& add(const uint8_t* bytes, size_t length) {
    length_ += length;
    while (length > 0) {
      size_t taken = kBlock - filled_ < length ? kBlock - filled_ : length;
      memcpy(block_ + filled_, bytes, taken);
      filled_ += taken;
      bytes += taken;
      length -= taken;
      if (filled_ == kBlock) use();
    }
    return self();
  }

  // `kDigest` bytes. Nothing may be added behind it.
  void end(uint8_t* digest) {
    uint64_t bits = 8 * length_;
    block_[filled_] = 0x80;
    filled_ += 1;
    if (filled_ > kBlock - 2 * sizeof(Word)) {
      memset(block_ + filled_, 0, kBlock - filled_);
      use();
    }
    // The length in bits, as two words, the highest byte first: nothing here is longer than 2^61 bytes.
    memset(block_ + filled_, 0, kBlock - filled_);
    for (int at = 0; at < 8; at += 1) block_[kBlock - 1 - at] = static_cast<uint8_t>(bits >> (8 * at));
    use();
    for (size_t at = 0; at < kDigest; at += 1) {
      digest[at] = static_cast<uint8_t>(state_[at / sizeof(Word)] >> (8 * (sizeof(Word) - 1 - at % sizeof(Word))));
    }
  }

 protected:
  Word state_[8];
  uint8_t block_[kBlock];

 private:
  Hash& self() { return static_cast<Hash&>(*this); }
  void use() {
    self().mix();
    filled_ = 0;
  }

  size_t filled_ = 0;
  uint64_t length_ = 0;
};

// `digestBytes`: 64, or 48 for SHA-384, which begins elsewhere and is cut off.
template <size_t digestBytes>
class Sha2 : public Blocks<Sha2<digestBytes>, uint64_t, digestBytes> {
  using Base = Blocks<Sha2<digestBytes>, uint64_t, digestBytes>;
  friend Base;
  using Base::block_;
  using Base::state_;
  static_assert(digestBytes == 64 || digestBytes == 48);

 public:
  Sha2() { memcpy(state_, digestBytes == 64 ? kStart512 : kStart384, sizeof(state_)); }

 private:
  void mix() {
    uint64_t words[16];
    for (int at = 0; at < 16; at += 1) {
      uint64_t word;
      memcpy(&word, block_ + 8 * at, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
      word = __builtin_bswap64(word);
#endif
      words[at] = word;
    }
    uint64_t a = state_[0], b = state_[1], c = state_[2], d = state_[3];
    uint64_t e = state_[4], f = state_[5], g = state_[6], h = state_[7];
    // Unrolled to the end, no word is moved from one name to the next, and all places in `words` are known: a third less time than by 16.
#pragma GCC unroll 80
    for (int round = 0; round < 80; round += 1) {
      uint64_t& word = words[round % 16];
      if (round >= 16) {
        uint64_t early = words[(round + 1) % 16];
        uint64_t late = words[(round + 14) % 16];
        word += (rotated(early, 1) ^ rotated(early, 8) ^ early >> 7) + words[(round + 9) % 16] +
                (rotated(late, 19) ^ rotated(late, 61) ^ late >> 6);
      }
      uint64_t first = h + (rotated(e, 14) ^ rotated(e, 18) ^ rotated(e, 41)) + (g ^ (e & (f ^ g))) +
                       kRoundConstants[round] + word;
      uint64_t second = (rotated(a, 28) ^ rotated(a, 34) ^ rotated(a, 39)) + ((a & b) | (c & (a | b)));
      h = g;
      g = f;
      f = e;
      e = d + first;
      d = c;
      c = b;
      b = a;
      a = first + second;
    }
    const uint64_t mixed[8] = {a, b, c, d, e, f, g, h};
    for (int at = 0; at < 8; at += 1) state_[at] += mixed[at];
  }
};

using Sha512 = Sha2<64>;
using Sha384 = Sha2<48>;

}  // namespace sha2
