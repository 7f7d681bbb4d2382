import type { Clock, Timer } from '../actor/clock.js'
import type { IndexQueue } from './index-queue.js'

const everyMs = 60_000

/** A transaction that is in no block after so long cannot be mined any more: its anchor is valid for some 100 minutes. */
const pendingSeconds = 2 * 3600

/** Drops pending transactions that nobody mined. */
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
        const beforeSeconds = Math.floor(this.clock.now() / 1000) - pendingSeconds
        const { pending } = this.queue.index.counts()
        if (pending > 0) this.queue.write(() => ({ kind: 'expire-pending', beforeSeconds })).catch(reject)
      })
    })
  }

  async stop(): Promise<void> {
    this.#timer?.cancel()
  }
}
