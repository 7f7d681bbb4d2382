import type { Wire } from '../../native/server/wire.js'
import type { Clock, Timer } from '../actor/clock.js'

/**
 * Delays end up to this much early, never late. It is short, so that the connections of a flood are not all released in one
 * turn, before those of other clients.
 */
const stepMs = 5

/**
 * Connections whose next request is not read for a while: what their clients send stays in the kernel, whose buffers soon are
 * full. So a client that repeats its request after a refusal costs no work. At most one entry a slot.
 */
export class RequestDelays {
  readonly #wire: Wire
  readonly #clock: Clock
  /** Slot and when its delay ends, in monotonic milliseconds. */
  readonly #until = new Map<number, number>()
  #timer: Timer | undefined

  constructor(wire: Wire, clock: Clock) {
    this.#wire = wire
    this.#clock = clock
  }

  /** Reads nothing for `ms` after the next answer. To be called before that answer. */
  add(slot: number, ms: number): void {
    this.#wire.delayNext(slot)
    this.#until.set(slot, this.#clock.monotonic() + ms)
    this.#timer ??= this.#clock.every(stepMs, () => this.#look())
  }

  #look(): void {
    const soon = this.#clock.monotonic() + stepMs
    for (const [slot, until] of this.#until) {
      if (until > soon) continue
      this.#until.delete(slot)
      this.#wire.takeNext(slot)
    }
    if (this.#until.size === 0) this.close()
  }

  close(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }
}
