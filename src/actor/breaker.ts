import { Backoff } from './backoff.js'
import type { Clock } from './clock.js'

export interface BreakerOptions {
  /** Calls allowed at once after a time without calls (the size of the token bucket). */
  readonly burst: number
  /** Calls allowed on average. */
  readonly perMinute: number
  /** Failures in a row after which no call is made for `coolMs`. */
  readonly failuresMax: number
  readonly coolMs: number
}

/**
 * A rate limit and a circuit breaker for a service of others: limits how often it is called, and stops calls for a
 * while after repeated failures.
 */
export class Breaker {
  #allowance: number
  #atMs: number
  readonly #rest: Backoff

  constructor(
    private readonly options: BreakerOptions,
    private readonly clock: Clock,
  ) {
    const { failuresMax, coolMs } = options
    this.#rest = new Backoff({ failuresMax, restMs: coolMs, restMaxMs: coolMs }, clock)
    this.#allowance = options.burst
    this.#atMs = clock.monotonic()
  }

  /** Less than half of the calls that are allowed at once are left. */
  get isScarce(): boolean {
    this.#fill()
    return this.#allowance < this.options.burst / 2
  }

  /** It has failed so often in a row, and was not well since. */
  get isFailing(): boolean {
    return this.#rest.isDue
  }

  /** True: the service may be called now, once. */
  take(): boolean {
    this.#fill()
    if (this.#rest.isOn || this.#allowance < 1) return false
    this.#allowance -= 1
    return true
  }

  #fill(): void {
    const { burst, perMinute } = this.options
    const nowMs = this.clock.monotonic()
    this.#allowance = Math.min(burst, this.#allowance + ((nowMs - this.#atMs) * perMinute) / 60_000)
    this.#atMs = nowMs
  }

  /** Same as of `Backoff`. */
  wasWellSince(sinceMs: number): boolean {
    return this.#rest.wasWellSince(sinceMs)
  }

  /** Reports the outcome of a call. After a pause one failure is enough for the next pause. */
  tell(wasWell: boolean): void {
    if (wasWell) this.#rest.well()
    else this.#rest.failed()
  }
}
