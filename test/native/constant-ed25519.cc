// Signs with a seed that was never written to: valgrind reports each branch and each address that depends on it. With the word
// `branch` its number is put into the digits that only public numbers may be put into, which must be reported.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-vectorize")
#endif
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../../native/ed25519/signer.h"

int main(int count, char** words) {
  const ed25519::Curve curve;
  static const ed25519::BaseTable base(curve);
  uint8_t* seed = static_cast<uint8_t*>(malloc(32));
  ed25519::Secret secret;
  ed25519::expand(base, seed, secret);
  if (count > 1 && strcmp(words[1], "branch") == 0) {
    uint64_t number[4];
    memcpy(number, secret.number, sizeof(number));
    int8_t digits[ed25519::kDigits];
    scalar::digitsOf(number, ed25519::kBaseWidth, digits);
    // Somebody might read them: else the compiler would leave them out.
    asm volatile("" : : "r"(digits) : "memory");
  }
  const uint8_t message[300] = {1, 2, 3};
  uint8_t signature[64];
  ed25519::sign(base, secret, message, sizeof(message), signature);
  // Nothing looks at the signature: it is made of the seed, too.
  puts("signed");
  free(seed);
  return 0;
}
