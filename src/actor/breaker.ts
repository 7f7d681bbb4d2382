import { Backoff } from './backoff.js'
import type { Clock } from './clock.js'

export interface BreakerOptions {
  /** Questions at once after a quiet time. */
  readonly burst: number
  /** Questions in the long run. */
  readonly perMinute: number
  /** Failures in a row after which nobody is asked for `coolMs`. */
  readonly failuresMax: number
  readonly coolMs: number
}

/** Guards a service of others: asks it no more often than agreed, and not at all for a while after it failed repeatedly. */
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

  /** True: the service may be asked now, once. */
  take(): boolean {
    const { burst, perMinute } = this.options
    const nowMs = this.clock.monotonic()
    this.#allowance = Math.min(burst, this.#allowance + ((nowMs - this.#atMs) * perMinute) / 60_000)
    this.#atMs = nowMs
    if (this.#rest.isOn || this.#allowance < 1) return false
    this.#allowance -= 1
    return true
  }

  /** Tells how it went. After a rest one failure is enough for the next one. */
  tell(wasWell: boolean): void {
    if (wasWell) this.#rest.well()
    else this.#rest.failed()
  }
}
