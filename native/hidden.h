// What hides numbers from who measures time or memory: choosing without a branch, and leaving nothing behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hidden {

// All ones for 1, zero for 0. The compiler does not know which of them it is, so that it makes no branch of what is done with it.
inline uint64_t maskOf(uint64_t bit) {
  uint64_t mask = 0 - bit;
  __asm__ volatile("" : "+r"(mask));
  return mask;
}

// 1 where both are equal; both are below 2^63.
inline uint64_t isSame(uint64_t one, uint64_t other) { return ((one ^ other) - 1) >> 63; }

// A test has its own: there the bit becomes known, and valgrind does not report the branch that follows.
#ifndef HIDDEN_DISCLOSED
#define HIDDEN_DISCLOSED(memory, length)
#endif

// A bit that may be known: whoever sees which way is taken learns nothing of the secret.
inline bool disclosed(uint64_t bit) {
  HIDDEN_DISCLOSED(&bit, sizeof(bit));
  return bit != 0;
}

// Zeros that the compiler does not leave out.
inline void wipe(void* memory, size_t length) {
  memset(memory, 0, length);
  __asm__ volatile("" : : "r"(memory) : "memory");
}

}  // namespace hidden
