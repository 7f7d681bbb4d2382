/**
 * Where a bucket lies in the table. Addresses keep all their bits: two of them never share a bucket. Resources are known by 64
 * bits of a keyed hash. The hash (HalfSipHash-1-3, by the authors of SipHash) makes sure that nobody without the secret can
 * make keys that crowd one place of the table.
 */
export interface Secret {
  readonly low: number
  readonly high: number
}

export class Key {
  constructor(
    readonly one: number,
    readonly two: number,
    readonly three: number,
    readonly four: number,
    /** Decides the place. */
    readonly hash: number,
  ) {}

  /** The key of an address. */
  static ofWords(words: Int32Array, secret: Secret): Key {
    const [one = 0, two = 0, three = 0, four = 0] = words
    text[0] = one
    text[1] = two
    text[2] = three
    text[3] = four
    digest(4, secret)
    return new Key(one, two, three, four, high)
  }

  /** The key of a resource named by three texts; each counts by its first 255 characters. */
  static ofNames(host: string, method: string, path: string, secret: Secret): Key {
    digest(put(path, put(method, put(host, 0))), secret)
    return new Key(low, high, 0, 0, high)
  }
}

/** Longer names are cut: whoever asks for long ones pays for them together. */
const textMax = 255

/** The words to be hashed and the two of the outcome: nothing here waits, and objects would cost more than the hash. */
const text = new Int32Array(3 * 64)
let low = 0
let high = 0

/** Four characters a word, which are bytes in HTTP; a last word tells the length, so that neighbours cannot trade them. */
function put(name: string, start: number): number {
  const length = Math.min(name.length, textMax)
  let to = start
  let word = 0
  for (let at = 0; at < length; at += 1) {
    word = (word << 8) ^ name.charCodeAt(at)
    if ((at & 3) === 3) {
      text[to] = word
      to += 1
      word = 0
    }
  }
  text[to] = (word << 8) ^ length
  return to + 1
}

/** Hashes the first `count` words, one round each, three at the end of either half. */
function digest(count: number, secret: Secret): void {
  let v0 = secret.low
  let v1 = secret.high ^ 0xee
  let v2 = secret.low ^ 0x6c796765
  let v3 = secret.high ^ 0x74656462
  for (let at = 0; at < count + 7; at += 1) {
    // Behind the words: their number as the last block, then six rounds without input.
    const word = at < count ? text[at]! : at === count ? count << 26 : 0
    if (at === count + 1) v2 ^= 0xee
    else if (at === count + 4) {
      low = v1 ^ v3
      v1 ^= 0xdd
    }
    v3 ^= word
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
    v0 ^= word
  }
  high = v1 ^ v3
}
