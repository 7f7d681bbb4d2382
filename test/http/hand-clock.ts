import { type Clock, systemClock } from '../../src/actor/clock.js'

/** Time that goes on when it is told to. */
export class HandClock implements Clock {
  #ms = 0
  readonly #acts = new Set<() => void>()
  now = systemClock.now
  after = systemClock.after
  monotonic = (): number => this.#ms
  every(_: number, act: () => void): { cancel: () => void } {
    this.#acts.add(act)
    return { cancel: () => this.#acts.delete(act) }
  }
  turn(ms: number): void {
    this.#ms += ms
    for (const act of this.#acts) act()
  }
}
