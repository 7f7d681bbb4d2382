import type { Clock, Timer } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { CashierOptions, Kinds } from './cashier-messages.js'
import type { Facilitator } from './facilitator.js'

export interface KindsLearnerParts {
  readonly facilitator: Pick<Facilitator, 'supported'>
  readonly kinds: Kinds
  readonly clock: Clock
  readonly log: Log
  readonly options: Pick<CashierOptions, 'supportedRetryMs' | 'supportedEveryMs'>
}

/** Queries what the facilitator supports until it names something, and repeats that from time to time. */
export class KindsLearner {
  #timer: Timer | undefined
  #closed = false

  constructor(private readonly parts: KindsLearnerParts) {}

  /** Begins. Does not wait. */
  start(): void {
    void this.#learn(this.parts.options.supportedRetryMs)
  }

  close(): void {
    this.#closed = true
    this.#timer?.cancel()
  }

  async #learn(retryMs: number): Promise<void> {
    const { facilitator, kinds, clock, log, options } = this.parts
    const versions = await facilitator.supported()
    if (this.#closed) return
    if (versions !== undefined) kinds.set(versions)
    if (versions?.length === 0) log.error('the facilitator settles no USDC payments on this network')
    // A facilitator that supports nothing may still be starting, so it is queried again as soon as one that does not
    // answer.
    const isUsable = versions !== undefined && versions.length > 0
    const nextMs = isUsable ? options.supportedEveryMs : retryMs
    const again = isUsable ? options.supportedRetryMs : Math.min(retryMs * 2, options.supportedEveryMs)
    this.#timer = clock.after(nextMs, () => void this.#learn(again))
  }
}
