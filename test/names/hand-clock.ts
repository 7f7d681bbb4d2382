import type { Clock } from '../../src/actor/clock.js'

interface Due {
  at: number
  readonly everyMs: number | undefined
  readonly act: () => void
}

/** Time that stands still until it is turned by hand; timers fire in order while it turns. */
export class HandClock implements Clock {
  #ms = 1_000_000
  #due: Due[] = []

  /** How far the time of day is from where it was: set by hand, as an operator sets a clock. */
  setMs = 0

  now(): number {
    return this.#ms + this.setMs
  }

  monotonic(): number {
    return this.#ms
  }

  after(ms: number, act: () => void): { cancel(): void } {
    return this.#add({ at: this.#ms + ms, everyMs: undefined, act })
  }

  every(ms: number, act: () => void): { cancel(): void } {
    return this.#add({ at: this.#ms + ms, everyMs: ms, act })
  }

  /** Turns time, and lets everything that follows from it happen. */
  async turn(ms: number): Promise<void> {
    const end = this.#ms + ms
    for (;;) {
      await settle()
      const [next] = this.#due.filter(({ at }) => at <= end).sort((one, other) => one.at - other.at)
      if (next === undefined) break
      this.#ms = next.at
      if (next.everyMs === undefined) this.#due = this.#due.filter((one) => one !== next)
      else next.at += next.everyMs
      next.act()
    }
    this.#ms = end
    await settle()
  }

  /** Timers that wait. */
  get waiting(): number {
    return this.#due.length
  }

  #add(due: Due): { cancel(): void } {
    this.#due.push(due)
    return {
      cancel: () => {
        this.#due = this.#due.filter((one) => one !== due)
      },
    }
  }
}

function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
