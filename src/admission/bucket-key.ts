import { randomBytes } from 'node:crypto'
import { halfSipHash, type SipSecret } from '../format/half-sip-hash.js'

/** The key of the hash. Without it nobody can choose names that all fall into one block of the table. */
export type Secret = SipSecret

/** The secret in eight random bytes: those given, or new ones. */
export function readSecret(bytes: Uint8Array = randomBytes(8)): Secret {
  const words = new DataView(bytes.buffer, bytes.byteOffset, 8)
  return { low: words.getInt32(0), high: words.getInt32(4) }
}

const sipHash = halfSipHash({ block: 1, end: 3 })

/**
 * Where a bucket lies in the table. Addresses keep all their bits: two of them never share a bucket. Resources are known by 64
 * bits of a keyed hash.
 */
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
    return new Key(one, two, three, four, digest(4, secret)[1]!)
  }

  /** The key of a resource named by three texts; each counts by its first 255 characters. */
  static ofNames(host: string, method: string, path: string, secret: Secret): Key {
    const [low = 0, high = 0] = digest(put(path, put(method, put(host, 0))), secret)
    return new Key(low, high, 0, 0, high)
  }
}

/** Longer names are cut, so that long names with the same beginning share a bucket. */
const textMax = 255

/**
 * The words to be hashed and the two of the outcome: shared by all calls, because no call is interrupted, and
 * allocating would take longer than the hash.
 */
const text = new Int32Array(3 * 64)
const outcome = new Int32Array(2)

/**
 * Four characters a word, which are bytes in HTTP; a last word holds the length, so that moving characters from one
 * name to the next gives another hash.
 */
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

function digest(count: number, secret: Secret): Int32Array {
  sipHash(text, count, count << 26, secret, outcome)
  return outcome
}
