// SHA-256 and SHA-1 by the cryptographic extension of ARMv8: the same parts as in lanes-x86.h.
#pragma once

#include <arm_neon.h>
#include <sys/auxv.h>

#include <cstdint>

#ifdef __clang__
#define LANES_TARGET __attribute__((target("crypto")))
#else
#define LANES_TARGET __attribute__((target("+crypto")))
#endif
#define LANES_PART LANES_TARGET __attribute__((always_inline)) inline

namespace lanes {

using Words = uint32x4_t;

inline bool able() {
  // HWCAP_SHA1 and HWCAP_SHA2 of the kernel's hwcap.h.
  constexpr unsigned long both = (1ul << 5) | (1ul << 6);
  return (getauxval(AT_HWCAP) & both) == both;
}

LANES_PART Words load(const uint32_t* from) { return vld1q_u32(from); }

LANES_PART Words add(Words one, Words other) { return vaddq_u32(one, other); }

LANES_PART Words swapped(const uint8_t* from) { return vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(from))); }

struct Sha256 {
  Words abcd, efgh;

  LANES_PART void read(const uint32_t* state) {
    abcd = load(state);
    efgh = load(state + 4);
  }

  LANES_PART void write(uint32_t* state) const {
    vst1q_u32(state, abcd);
    vst1q_u32(state + 4, efgh);
  }

  LANES_PART void rounds(Words sums) {
    Words before = abcd;
    abcd = vsha256hq_u32(abcd, efgh, sums);
    efgh = vsha256h2q_u32(efgh, before, sums);
  }

  LANES_PART void join(const Sha256& before) {
    abcd = add(abcd, before.abcd);
    efgh = add(efgh, before.efgh);
  }

  LANES_PART static Words words(const uint8_t* from) { return swapped(from); }

  LANES_PART static Words next(Words w0, Words w1, Words w2, Words w3) {
    return vsha256su1q_u32(vsha256su0q_u32(w0, w1), w2, w3);
  }
};

struct Sha1 {
  Words abcd;
  uint32_t e;

  LANES_PART void read(const uint32_t* state) {
    abcd = load(state);
    e = state[4];
  }

  LANES_PART void write(uint32_t* state) const {
    vst1q_u32(state, abcd);
    state[4] = e;
  }

  template <int step>
  LANES_PART void rounds(Words words) {
    constexpr uint32_t constants[] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
    Words sums = add(words, vdupq_n_u32(constants[step / 5]));
    uint32_t next = vsha1h_u32(vgetq_lane_u32(abcd, 0));
    if constexpr (step / 5 == 0) {
      abcd = vsha1cq_u32(abcd, e, sums);
    } else if constexpr (step / 5 == 2) {
      abcd = vsha1mq_u32(abcd, e, sums);
    } else {
      abcd = vsha1pq_u32(abcd, e, sums);
    }
    e = next;
  }

  LANES_PART void join(const Sha1& before) {
    e += before.e;
    abcd = add(abcd, before.abcd);
  }

  LANES_PART static Words words(const uint8_t* from) { return swapped(from); }

  LANES_PART static Words next(Words w0, Words w1, Words w2, Words w3) {
    return vsha1su1q_u32(vsha1su0q_u32(w0, w1, w2), w3);
  }
};

}  // namespace lanes
