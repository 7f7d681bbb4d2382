/** A secret key of 64 bits, as two signed halves. */
export interface SipSecret {
  readonly low: number
  readonly high: number
}

/**
 * Leaves the hash of the first `count` words in the two cells of `outcome`. `last` is the last block: what is left of the text,
 * with its length in the upper byte.
 */
export type SipHash = (
  words: Int32Array,
  count: number,
  last: number,
  secret: SipSecret,
  outcome: Int32Array,
) => void

/**
 * HalfSipHash with 64 bits of output (Aumasson, Bernstein: SipHash; the variant for 32-bit machines): spreads keys
 * evenly, and nobody who does not know the secret can choose keys with the same hash. `rounds`: mixing rounds for
 * each block, and for each half of the outcome. Allocates nothing, because it is called where an allocation would
 * take longer than the hash.
 */
export function halfSipHash(rounds: { readonly block: number; readonly end: number }): SipHash {
  return (words, count, last, secret, outcome) => {
    let v0 = secret.low
    let v1 = secret.high ^ 0xee
    let v2 = secret.low ^ 0x6c796765
    let v3 = secret.high ^ 0x74656462
    // After the blocks, two more passes without a block give the two halves of the outcome.
    for (let at = 0; at < count + 3; at += 1) {
      const word = at < count ? words[at]! : at === count ? last : 0
      if (at === count + 1) v2 ^= 0xee
      else if (at === count + 2) {
        outcome[0] = v1 ^ v3
        v1 ^= 0xdd
      }
      v3 ^= word
      for (let left = at > count ? rounds.end : rounds.block; left > 0; left -= 1) {
        v0 = (v0 + v1) | 0
        v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
        v0 = (v0 << 16) | (v0 >>> 16)
        v2 = (v2 + v3) | 0
        v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
        v0 = (v0 + v3) | 0
        v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
        v2 = (v2 + v1) | 0
        v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
        v2 = (v2 << 16) | (v2 >>> 16)
      }
      v0 ^= word
    }
    outcome[1] = v1 ^ v3
  }
}
