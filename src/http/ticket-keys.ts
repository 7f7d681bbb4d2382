import { ticketLayout } from '../../native/server/wire.js'
import type { Clock, Timer } from '../actor/clock.js'

const { headBytes, keyBytes, places } = ticketLayout
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
    return new SharedArrayBuffer(headBytes + places * keyBytes)
  }

  /** Makes a new key, by which tickets are made from now on. */
  rotate(): void {
    const next = Atomics.load(this.#count, 0) + 1
    this.#keys.set(this.#random(keyBytes), (next % places) * keyBytes)
    Atomics.store(this.#count, 0, next)
  }

  keep(clock: Clock): Timer {
    return clock.every(rotateMs, () => this.rotate())
  }
}
