import type { Clock, Timer } from '../actor/clock.js'
import { usedReasons } from './cashier-replies.js'
import type { PaymentRecord, PaymentRecords } from './payment-records.js'

/** Looks at once, each some requests to a node of the chain. */
const atOnceMax = 4
/** Records that are read in one go. */
const pageMax = 64
/** Looks whose time is kept; more than that is looked at as if it was new. */
const keptMax = 4096
/** A payment is looked at again after this part of the time since it failed: some sixty times in a week. */
const agePart = 1 / 8

/**
 * Looks at the chain again for payments that failed in doubt (`PaymentRecord.doubtful`), until it shows whether they moved. A
 * payment whose nonce was used is not among them: another seller with this wallet may have requested what is on the chain.
 */
export class DoubtfulPayments {
  readonly #lookedMs = new Map<string, number>()
  #timer: Timer | undefined
  #isWorking = false
  #after = ''

  /** `look` never rejects but for bugs. `everyMs`: the shortest time between two looks at one payment. */
  constructor(
    private readonly records: Pick<PaymentRecords, 'doubtful'>,
    private readonly look: (record: PaymentRecord) => Promise<void>,
    private readonly clock: Clock,
    private readonly everyMs: number,
  ) {}

  start(): void {
    this.#timer = this.clock.every(this.everyMs, () => void this.#work())
  }

  close(): void {
    this.#timer?.cancel()
  }

  /** One page of the records; a call while one is under way does nothing. */
  async #work(): Promise<void> {
    if (this.#isWorking) return
    this.#isWorking = true
    try {
      const page = this.records.doubtful(this.#after, pageMax)
      this.#after = page.length < pageMax ? '' : (page.at(-1)?.payment ?? '')
      const line = page.filter((record) => this.#isDue(record)).values()
      const lane = async (): Promise<void> => {
        for (const record of line) {
          this.#note(record.payment)
          await this.look(record)
        }
      }
      await Promise.all(Array.from({ length: atOnceMax }, lane))
    } finally {
      this.#isWorking = false
    }
  }

  #isDue({ payment, endedMs = 0, reason = '' }: PaymentRecord): boolean {
    const nowMs = this.clock.now()
    const pauseMs = Math.max(this.everyMs, (nowMs - endedMs) * agePart)
    // A clock that was set back must not end the looks.
    const passedMs = Math.abs(nowMs - (this.#lookedMs.get(payment) ?? 0))
    return !usedReasons.has(reason) && passedMs >= pauseMs
  }

  #note(payment: string): void {
    this.#lookedMs.delete(payment)
    this.#lookedMs.set(payment, this.clock.now())
    const [oldest] = this.#lookedMs.keys()
    if (this.#lookedMs.size > keptMax && oldest !== undefined) this.#lookedMs.delete(oldest)
  }
}
