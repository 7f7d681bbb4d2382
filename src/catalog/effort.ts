import type { Clock } from '../actor/clock.js'

/** The clock is asked once in so many steps. */
const stepsPerLook = 16

/** How much a query may still do. Every list that it reads takes its steps from the same effort. */
export class Effort {
  #left: number
  readonly #until: number
  #spent = false

  /** `stepsMax` block or row reads (2 to 10 us each), and at most `timeMs` of this thread's time. */
  constructor(
    stepsMax: number,
    timeMs: number,
    private readonly clock: Clock,
  ) {
    this.#left = stepsMax
    this.#until = clock.monotonic() + timeMs
  }

  /** Takes one step; false where nothing is left. */
  step(): boolean {
    if (this.#spent) return false
    this.#left -= 1
    const late = this.#left % stepsPerLook === 0 && this.clock.monotonic() > this.#until
    if (this.#left < 0 || late) this.#spent = true
    return !this.#spent
  }

  /** Steps that may still be taken. */
  get left(): number {
    return Math.max(this.#left, 0)
  }

  /** True once a step was refused: what was found may be a part only. */
  get spent(): boolean {
    return this.#spent
  }
}
