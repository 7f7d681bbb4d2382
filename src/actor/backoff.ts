import type { Clock } from './clock.js'

export interface BackoffOptions {
  /** Failures in a row after which calls pause. */
  readonly failuresMax: number
  readonly restMs: number
  /** Each further failure doubles the pause, up to this. */
  readonly restMaxMs: number
}

/**
 * Backoff for calls to a service of others. After some failures in a row no call is made for a while. After such a
 * pause one failure is enough for the next, longer one; one success resets everything. Used by all callers of
 * services that may fail.
 */
export class Backoff {
  #failures = 0
  #untilMs = Number.NEGATIVE_INFINITY
  #wellMs = Number.NEGATIVE_INFINITY

  constructor(
    private readonly options: BackoffOptions,
    private readonly clock: Clock,
  ) {}

  /** True: no call is to be made now. */
  get isOn(): boolean {
    return this.clock.monotonic() < this.#untilMs
  }

  /** What is left of the pause. */
  get leftMs(): number {
    return Math.max(0, this.#untilMs - this.clock.monotonic())
  }

  /** It failed so often that the next call is a trial. */
  get isDue(): boolean {
    return this.#failures >= this.options.failuresMax
  }

  /** The next failure begins a pause. */
  get isLast(): boolean {
    return this.#failures + 1 >= this.options.failuresMax
  }

  /** Starts a pause for all others, so that one call alone can try whether the service works again. */
  hold(ms: number): void {
    this.#untilMs = this.clock.monotonic() + ms
  }

  /**
   * Whether a call was answered at `sinceMs` (monotonic) or later. A call that was made then and failed says nothing about the
   * service: it may be slow, or fail, for what that call wanted alone.
   */
  wasWellSince(sinceMs: number): boolean {
    return this.#wellMs >= sinceMs
  }

  well(): void {
    this.#failures = 0
    this.#wellMs = this.clock.monotonic()
  }

  failed(): void {
    const { failuresMax, restMs, restMaxMs } = this.options
    this.#failures += 1
    const over = this.#failures - failuresMax
    if (over >= 0) this.hold(Math.min(restMs * 2 ** over, restMaxMs))
  }
}
