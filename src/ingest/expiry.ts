import type { Clock, Timer } from '../actor/clock.js'
import type { IndexQueue } from './index-queue.js'

const everyMs = 60_000

/** A transaction that is in no block after so long cannot be mined any more: its anchor is valid for some 100 minutes. */
const pendingSeconds = 2 * 3600

/**
 * An item may be in no block for longer: an upload service took it and has its bundle still to post, or to post again. Once the
 * bundle is mined the item comes back in any case. Those of a sandbox end after days by an order of their own.
 */
const pendingItemSeconds = 14 * 24 * 3600

/** Drops pending transactions that nobody mined, and much later items. */
export class Expiry {
  #timer: Timer | undefined

  constructor(
    private readonly queue: IndexQueue,
    private readonly clock: Clock,
  ) {}

  /** Never resolves; rejects where the catalog is lost, and then the thread must end. */
  run(): Promise<never> {
    return new Promise((_, reject) => {
      this.#timer = this.clock.every(everyMs, () => {
        const nowSeconds = Math.floor(this.clock.now() / 1000)
        const beforeSeconds = Math.max(0, nowSeconds - pendingSeconds)
        const itemsBeforeSeconds = Math.max(0, nowSeconds - pendingItemSeconds)
        const { pending } = this.queue.index.counts()
        if (pending === 0) return
        this.queue.write(() => ({ kind: 'expire-pending', beforeSeconds, itemsBeforeSeconds })).catch(reject)
      })
    })
  }

  async stop(): Promise<void> {
    this.#timer?.cancel()
  }
}
