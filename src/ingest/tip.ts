import type { Clock, Timer } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Tip } from '../actor/shared.js'
import type { Chain } from '../chain/chain.js'
import { isRefusal } from '../format/refusal.js'

/** Asks nodes for the height of the chain now and then, and tells every thread through shared memory. */
export class TipFollower {
  readonly #abort = new AbortController()
  #timer: Timer | undefined
  #asking = false
  #silent = false

  constructor(
    private readonly chain: Chain,
    private readonly tip: Tip,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  /** Asks at once, then each `everyMs`. */
  start(everyMs: number): void {
    void this.#ask()
    this.#timer = this.clock.every(everyMs, () => void this.#ask())
  }

  stop(): void {
    this.#timer?.cancel()
    this.#abort.abort()
  }

  async #ask(): Promise<void> {
    if (this.#asking) return
    this.#asking = true
    const height = await this.chain.height(this.#abort.signal)
    this.#asking = false
    if (!isRefusal(height)) {
      this.tip.move(height)
      if (this.#silent) this.log.info({ height }, 'base-layer nodes answer again')
      this.#silent = false
    } else if (!this.#silent && !this.#abort.signal.aborted) {
      // Told once, not at every try. The last height stays, so that nothing is called final too early.
      this.log.warn({ reason: height.message }, 'no base-layer node answers')
      this.#silent = true
    }
  }
}
