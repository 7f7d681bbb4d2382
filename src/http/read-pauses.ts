import type { Wire } from '../../native/server/wire.js'
import type { Clock, Timer } from '../actor/clock.js'

/**
 * How exactly the end of a hold is kept. Never late: a hold ends a little early instead. Short, so that the connections of a
 * flood are not all released at once, in front of everybody else.
 */
const stepMs = 5

/**
 * Connections that are not read for a while: what their clients send waits in the kernel, which soon lets them send no more. So
 * whoever goes on asking after a refusal costs nothing. At most one entry a slot.
 */
export class ReadPauses {
  readonly #wire: Wire
  readonly #clock: Clock
  /** Slot and when its hold ends, in monotonic milliseconds. */
  readonly #until = new Map<number, number>()
  #timer: Timer | undefined

  constructor(wire: Wire, clock: Clock) {
    this.#wire = wire
    this.#clock = clock
  }

  /** To be called before the answer is sent behind which nothing is read for `ms`. */
  add(slot: number, ms: number): void {
    this.#wire.hold(slot)
    this.#until.set(slot, this.#clock.monotonic() + ms)
    this.#timer ??= this.#clock.every(stepMs, () => this.#look())
  }

  #look(): void {
    const soon = this.#clock.monotonic() + stepMs
    for (const [slot, until] of this.#until) {
      if (until > soon) continue
      this.#until.delete(slot)
      this.#wire.release(slot)
    }
    if (this.#until.size === 0) this.close()
  }

  close(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }
}
