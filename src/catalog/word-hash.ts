/**
 * HalfSipHash-2-4 with 64 bits of output: spreads words evenly, and nobody who does not know the key can make words that
 * fall together. (Aumasson, Bernstein: SipHash; the variant for 32-bit machines.)
 */
export class WordHash {
  /** The first half of the last hash. */
  first = 0
  /** The second half of the last hash. */
  second = 0
  readonly #k0: number
  readonly #k1: number
  #v0 = 0
  #v1 = 0
  #v2 = 0
  #v3 = 0

  /** `key` has 8 bytes. */
  constructor(key: Uint8Array) {
    const bytes = Buffer.from(key)
    this.#k0 = bytes.readInt32LE(0)
    this.#k1 = bytes.readInt32LE(4)
  }

  /** Leaves the hash of these bytes in `first` and `second`. */
  take(bytes: Uint8Array): void {
    this.#v0 = this.#k0
    this.#v1 = this.#k1 ^ 0xee
    this.#v2 = this.#k0 ^ 0x6c796765
    this.#v3 = this.#k1 ^ 0x74656462
    const whole = bytes.length & ~3
    for (let at = 0; at < whole; at += 4) {
      this.#mix(
        (bytes[at] as number) |
          ((bytes[at + 1] as number) << 8) |
          ((bytes[at + 2] as number) << 16) |
          ((bytes[at + 3] as number) << 24),
      )
    }
    let last = (bytes.length & 0xff) << 24
    for (let at = whole; at < bytes.length; at += 1) last |= (bytes[at] as number) << (8 * (at - whole))
    this.#mix(last)
    this.#v2 ^= 0xee
    this.first = this.#end()
    this.#v1 ^= 0xdd
    this.second = this.#end()
  }

  #mix(word: number): void {
    this.#v3 ^= word
    this.#round()
    this.#round()
    this.#v0 ^= word
  }

  #end(): number {
    for (let turn = 0; turn < 4; turn += 1) this.#round()
    return (this.#v1 ^ this.#v3) >>> 0
  }

  #round(): void {
    let [v0, v1, v2, v3] = [this.#v0, this.#v1, this.#v2, this.#v3]
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
    this.#v0 = v0
    this.#v1 = v1
    this.#v2 = v2
    this.#v3 = v3
  }
}
