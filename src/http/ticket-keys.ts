import type { Clock, Timer } from '../actor/clock.js'

/** Of one key: its name (16 bytes), AES-256 (32) and HMAC-SHA-256 (32), RFC 5077 section 4. */
export const ticketKeyBytes = 80
/** Places of keys: the one in use, those before it that are still read, and one that is being written. */
const places = 4
/** In front of the keys: how many were made (Int32), and three unused. */
const headBytes = 16
/** A ticket is taken for as long as its key is one of the last three. */
const rotateMs = 8 * 3_600_000

/**
 * Keys of session tickets, in memory that all threads share: a client resumes with any of them, also after new certificates
 * were given. One thread writes.
 */
export class TicketKeys {
  readonly #count: Int32Array
  readonly #keys: Uint8Array
  readonly #random: (bytes: number) => Uint8Array

  constructor(
    readonly bytes: SharedArrayBuffer,
    random: (bytes: number) => Uint8Array,
  ) {
    this.#count = new Int32Array(bytes, 0, 1)
    this.#keys = new Uint8Array(bytes, headBytes)
    this.#random = random
    if (this.#count[0] === 0) this.rotate()
  }

  static memory(): SharedArrayBuffer {
    return new SharedArrayBuffer(headBytes + places * ticketKeyBytes)
  }

  /** Makes a new key, by which tickets are made from now on. */
  rotate(): void {
    const next = Atomics.load(this.#count, 0) + 1
    this.#keys.set(this.#random(ticketKeyBytes), (next % places) * ticketKeyBytes)
    Atomics.store(this.#count, 0, next)
  }

  keep(clock: Clock): Timer {
    return clock.every(rotateMs, () => this.rotate())
  }

  /** The key in use. */
  static newest(bytes: SharedArrayBuffer): Uint8Array {
    const at = Atomics.load(new Int32Array(bytes, 0, 1), 0) % places
    return new Uint8Array(bytes, headBytes + at * ticketKeyBytes, ticketKeyBytes).slice()
  }
}
