// What the addons of both curves do alike with numbers modulo the order of a base point: nothing else is the same, since the
// orders have another form, and so another way to reduce by them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace scalar {

// Only for public numbers. The digits of a number of four words, the lowest first, in non-adjacent form: each zero or odd and below
// 2^(width - 1) in size, of `width` in a row at most one is not zero. The sum of digit * 2^place is the number, where it has no
// more than `count - 2` bits.
template <size_t count>
void digitsOf(const uint64_t* words, int width, int8_t (&digits)[count]) {
  uint64_t padded[6] = {words[0], words[1], words[2], words[3], 0, 0};
  memset(digits, 0, count);
  int64_t size = int64_t{1} << width;
  int64_t carry = 0;
  for (size_t place = 0; place < count;) {
    size_t shift = place % 64;
    const uint64_t* word = padded + place / 64;
    uint64_t bits = shift == 0 ? word[0] : word[0] >> shift | word[1] << (64 - shift);
    int64_t digit = carry + static_cast<int64_t>(bits & static_cast<uint64_t>(size - 1));
    if (digit % 2 == 0) {
      place += 1;
      continue;
    }
    carry = digit < size / 2 ? 0 : 1;
    digits[place] = static_cast<int8_t>(digit - carry * size);
    place += static_cast<size_t>(width);
  }
}

}  // namespace scalar
