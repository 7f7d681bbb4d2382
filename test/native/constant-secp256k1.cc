// Signs with a secret that valgrind is told to be unknown: it reports each branch and each address that depends on it, but those on
// single bits that may be known. With the word `branch` the secret is given to a call for public numbers, which must be reported.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-vectorize")
#endif
#include <cstdio>
#include <cstring>

#include <valgrind/memcheck.h>
#define HIDDEN_DISCLOSED(memory, length) VALGRIND_MAKE_MEM_DEFINED(memory, length)
#include "../../native/secp256k1/signer.h"

int main(int count, char** words) {
  static const secp256k1::SigningTable base;
  uint8_t secret[32];
  for (uint8_t at = 0; at < 32; at += 1) secret[at] = static_cast<uint8_t>(7 * at + 1);
  VALGRIND_MAKE_MEM_UNDEFINED(secret, sizeof(secret));
  if (count > 1 && strcmp(words[1], "branch") == 0) {
    secp256k1::Number inverse = secp256k1::scalarInverted(secp256k1::numberOf(secret));
    memcpy(secret, inverse.word, sizeof(secret));
  }
  // Of digests with either parity of the nonce, and with s above and below the half.
  for (uint8_t round = 0; round < 16; round += 1) {
    const uint8_t digest[32] = {round, 2, 3};
    uint8_t signature[65];
    if (!secp256k1::sign(base, secret, digest, signature)) return 1;
  }
  // Nothing looks at the signatures: they are made of the secret, too.
  puts("signed");
  return 0;
}
