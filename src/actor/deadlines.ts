import type { Clock, Timer } from './clock.js'

/** One that waits. */
class Deadline implements Timer {
  constructor(
    private readonly waiting: Set<Deadline>,
    readonly dueMs: number,
    readonly act: () => void,
  ) {
    waiting.add(this)
  }

  cancel(): void {
    this.waiting.delete(this)
  }
}

/**
 * Many deadlines, nearly all of which are cancelled, behind one timer: a timer for each would cost as much as the work that it
 * watches. All are looked at when the first of them may be due, so they should be hundreds, not millions.
 */
export class Deadlines implements Pick<Clock, 'after'> {
  readonly #waiting = new Set<Deadline>()
  #timer: Timer | undefined
  /** When the timer fires. */
  #atMs = Number.POSITIVE_INFINITY

  constructor(private readonly clock: Pick<Clock, 'after' | 'monotonic'>) {}

  /** Calls `act` once, in `ms`, unless it is cancelled before. */
  after(ms: number, act: () => void): Timer {
    const dueMs = this.clock.monotonic() + ms
    if (dueMs < this.#atMs) this.#arm(ms, dueMs)
    return new Deadline(this.#waiting, dueMs, act)
  }

  #arm(ms: number, atMs: number): void {
    this.#timer?.cancel()
    this.#atMs = atMs
    this.#timer = this.clock.after(ms, () => this.#look())
  }

  #look(): void {
    this.#timer = undefined
    this.#atMs = Number.POSITIVE_INFINITY
    const nowMs = this.clock.monotonic()
    const due: Deadline[] = []
    let nextMs = Number.POSITIVE_INFINITY
    for (const one of this.#waiting) {
      if (one.dueMs <= nowMs) due.push(one)
      else nextMs = Math.min(nextMs, one.dueMs)
    }
    if (nextMs < Number.POSITIVE_INFINITY) this.#arm(nextMs - nowMs, nextMs)
    // One may cancel another, which is not called then.
    for (const one of due) if (this.#waiting.delete(one)) one.act()
  }
}
