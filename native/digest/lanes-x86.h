// SHA-256 and SHA-1 by the SHA extensions of x86-64: four rounds and four words of schedule at a time. FIPS 180-4 says what is
// computed, Intel's description of the instructions what each of them does of it.
#pragma once

#include <cpuid.h>
#include <immintrin.h>

#include <cstdint>

#define LANES_TARGET __attribute__((target("sha,sse4.1,ssse3")))
#define LANES_PART LANES_TARGET __attribute__((always_inline)) inline

namespace lanes {

using Words = __m128i;

inline bool able() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_SSSE3) == 0 || (c & bit_SSE4_1) == 0) return false;
  constexpr unsigned sha = 1u << 29;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & sha) != 0;
}

LANES_PART Words load(const void* from) { return _mm_loadu_si128(static_cast<const Words*>(from)); }

LANES_PART Words add(Words one, Words other) { return _mm_add_epi32(one, other); }

// The state of a SHA-256 as the instructions want it; A and C in the uppermost lanes.
struct Sha256 {
  Words abef, cdgh;

  LANES_PART void read(const uint32_t* state) {
    Words badc = _mm_shuffle_epi32(load(state), 0xb1);
    Words hgfe = _mm_shuffle_epi32(load(state + 4), 0x1b);
    abef = _mm_alignr_epi8(badc, hgfe, 8);
    cdgh = _mm_blend_epi16(hgfe, badc, 0xf0);
  }

  LANES_PART void write(uint32_t* state) const {
    Words abef4 = _mm_shuffle_epi32(abef, 0x1b);
    Words ghcd = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128(reinterpret_cast<Words*>(state), _mm_blend_epi16(abef4, ghcd, 0xf0));
    _mm_storeu_si128(reinterpret_cast<Words*>(state + 4), _mm_alignr_epi8(ghcd, abef4, 8));
  }

  // Four rounds; `sums` are the words of the schedule with their constants added.
  LANES_PART void rounds(Words sums) {
    cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sums);
    abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sums, 0x0e));
  }

  LANES_PART void join(const Sha256& before) {
    abef = add(abef, before.abef);
    cdgh = add(cdgh, before.cdgh);
  }

  // Four words of the message.
  LANES_PART static Words words(const void* from) {
    return _mm_shuffle_epi8(load(from), _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203));
  }

  // The four words of the schedule that follow on these sixteen.
  LANES_PART static Words next(Words w0, Words w1, Words w2, Words w3) {
    return _mm_sha256msg2_epu32(add(_mm_sha256msg1_epu32(w0, w1), _mm_alignr_epi8(w3, w2, 4)), w3);
  }
};

// The same of a SHA-1; here the first word stands in the uppermost lane.
struct Sha1 {
  Words abcd;
  // E in the uppermost lane; between two steps ABCD as it was one step before, whose A becomes E.
  Words e;

  LANES_PART void read(const uint32_t* state) {
    abcd = _mm_shuffle_epi32(load(state), 0x1b);
    e = _mm_set_epi32(static_cast<int>(state[4]), 0, 0, 0);
  }

  LANES_PART void write(uint32_t* state) const {
    _mm_storeu_si128(reinterpret_cast<Words*>(state), _mm_shuffle_epi32(abcd, 0x1b));
    state[4] = static_cast<uint32_t>(_mm_extract_epi32(e, 3));
  }

  // The four rounds from 4 * step on.
  template <int step>
  LANES_PART void rounds(Words words) {
    Words sum = step == 0 ? add(e, words) : _mm_sha1nexte_epu32(e, words);
    e = abcd;
    abcd = _mm_sha1rnds4_epu32(abcd, sum, step / 5);
  }

  LANES_PART void join(const Sha1& before) {
    e = _mm_sha1nexte_epu32(e, before.e);
    abcd = add(abcd, before.abcd);
  }

  LANES_PART static Words words(const void* from) {
    return _mm_shuffle_epi8(load(from), _mm_set_epi64x(0x0001020304050607, 0x08090a0b0c0d0e0f));
  }

  LANES_PART static Words next(Words w0, Words w1, Words w2, Words w3) {
    return _mm_sha1msg2_epu32(_mm_xor_si128(_mm_sha1msg1_epu32(w0, w1), w2), w3);
  }
};

}  // namespace lanes
