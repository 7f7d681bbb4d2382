import type { Clock } from '../../actor/clock.js'

interface Waiting {
  readonly dueMs: number
  readonly giveUp: () => void
}

/** Deadlines of many waits of the same length, with one timer: a timer for each would cost as much as the wait's own work. */
export class HeadWatch {
  /** In the order of their deadlines, because all wait equally long. */
  readonly #waiting = new Set<Waiting>()
  #isArmed = false

  constructor(
    private readonly waitMs: number,
    private readonly clock: Clock,
  ) {}

  /** Calls `giveUp` when the time is over. Returns how to stop waiting. */
  watch(giveUp: () => void): () => void {
    const waiting: Waiting = { dueMs: this.clock.monotonic() + this.waitMs, giveUp }
    this.#waiting.add(waiting)
    if (!this.#isArmed) this.#arm(this.waitMs)
    return () => void this.#waiting.delete(waiting)
  }

  #arm(ms: number): void {
    this.#isArmed = true
    this.clock.after(ms, () => this.#look())
  }

  #look(): void {
    this.#isArmed = false
    const nowMs = this.clock.monotonic()
    for (const waiting of this.#waiting) {
      const leftMs = waiting.dueMs - nowMs
      if (leftMs > 0) {
        this.#arm(leftMs)
        return
      }
      this.#waiting.delete(waiting)
      waiting.giveUp()
    }
  }
}
