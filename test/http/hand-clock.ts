import { type Clock, systemClock } from '../../src/actor/clock.js'

const stepMs = 500

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
  /** As for a thread that did not run meanwhile: timers come once, at the end. */
  jump(ms: number): void {
    this.#ms += ms
    for (const act of this.#acts) act()
  }
  /** As for a thread that runs: timers come again and again. */
  turn(ms: number): void {
    for (let left = ms; left > 0; left -= stepMs) this.jump(Math.min(left, stepMs))
  }
}
