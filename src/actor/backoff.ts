import type { Clock } from './clock.js'

export interface BackoffOptions {
  /** Failures in a row after which the service rests. */
  readonly failuresMax: number
  readonly restMs: number
  /** Each further failure doubles the rest, up to this. */
  readonly restMaxMs: number
}

/**
 * When a service of others is left alone: after some failures in a row, for a while. After a rest one failure is enough for the
 * next, longer one; one good answer ends it all. The one rule for whoever asks services that may fail.
 */
export class Backoff {
  #failures = 0
  #untilMs = Number.NEGATIVE_INFINITY

  constructor(
    private readonly options: BackoffOptions,
    private readonly clock: Clock,
  ) {}

  /** It is not to be asked now. */
  get isOn(): boolean {
    return this.clock.monotonic() < this.#untilMs
  }

  /** It failed so often that a question is a trial. */
  get isDue(): boolean {
    return this.#failures >= this.options.failuresMax
  }

  /** Nobody else asks for so long: one question tries whether it is well again. */
  hold(ms: number): void {
    this.#untilMs = this.clock.monotonic() + ms
  }

  well(): void {
    this.#failures = 0
  }

  failed(): void {
    const { failuresMax, restMs, restMaxMs } = this.options
    this.#failures += 1
    const over = this.#failures - failuresMax
    if (over >= 0) this.hold(Math.min(restMs * 2 ** over, restMaxMs))
  }
}
