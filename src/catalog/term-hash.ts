import { halfSipHash, type SipSecret } from '../format/half-sip-hash.js'

const sipHash = halfSipHash({ block: 2, end: 4 })

/** HalfSipHash-2-4 of bytes, with 64 bits of output, by a key that only this index knows. */
export class TermHash {
  readonly #secret: SipSecret
  #words = new Int32Array(256)
  readonly #outcome = new Int32Array(2)

  /** `key` has 8 bytes. */
  constructor(key: Uint8Array) {
    const bytes = Buffer.from(key)
    this.#secret = { low: bytes.readInt32LE(0), high: bytes.readInt32LE(4) }
  }

  /** The first half of the last hash. */
  get first(): number {
    return this.#outcome[0]! >>> 0
  }

  /** The second half of the last hash. */
  get second(): number {
    return this.#outcome[1]! >>> 0
  }

  /** Leaves the hash of these bytes in `first` and `second`. */
  take(bytes: Uint8Array): void {
    const count = bytes.length >>> 2
    if (count > this.#words.length) this.#words = new Int32Array(2 * count)
    const words = this.#words
    for (let at = 0, from = 0; at < count; at += 1, from += 4) {
      words[at] = bytes[from]! | (bytes[from + 1]! << 8) | (bytes[from + 2]! << 16) | (bytes[from + 3]! << 24)
    }
    let last = bytes.length << 24
    for (let at = count * 4; at < bytes.length; at += 1) last |= bytes[at]! << (8 * (at & 3))
    sipHash(words, count, last, this.#secret, this.#outcome)
  }
}
