import { type Clock, systemClock, type Timer } from '../../src/actor/clock.js'

/** Time that goes on by hand, with its timers. */
export class Hours implements Clock {
  #ms = 0
  readonly #timers = new Set<{ readonly atMs: number; readonly act: () => void }>()
  now = systemClock.now
  every = systemClock.every
  monotonic = (): number => this.#ms
  after = (ms: number, act: () => void): Timer => {
    const timer = { atMs: this.#ms + ms, act }
    this.#timers.add(timer)
    return { cancel: () => this.#timers.delete(timer) }
  }
  async pass(ms: number): Promise<void> {
    const endMs = this.#ms + ms
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve))
      const [next] = [...this.#timers].filter(({ atMs }) => atMs <= endMs).sort((a, b) => a.atMs - b.atMs)
      if (next === undefined) break
      this.#ms = Math.max(this.#ms, next.atMs)
      this.#timers.delete(next)
      next.act()
    }
    this.#ms = endMs
  }
}
