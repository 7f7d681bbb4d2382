import { BoundedMap } from '../actor/bounded-map.js'
import type { Clock, Timer } from '../actor/clock.js'
import type { PaymentRecord, PaymentRecords } from './payment-records.js'

/** Looks at once, each some requests to a node of the chain. */
const atOnceMax = 4
/** Looks in one go, and the records that are read for them. */
const looksMax = 64
const pageMax = 1024
/** Looks whose time is kept; more than that is looked at as if it was new. */
const keptMax = 4096
/** A payment is looked at again after this part of the time since it failed: some sixty times in a week. */
const agePart = 1 / 8

/**
 * Looks at the chain again for payments that failed in doubt (`PaymentRecords.doubtful`), until it shows whether they moved.
 */
export class DoubtfulPayments {
  readonly #lookedMs = new BoundedMap<string, number>(keptMax)
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
      const due = page.filter((record) => this.#isDue(record)).slice(0, looksMax)
      // The next page begins behind the last one that is looked at now.
      const last = due.length < looksMax ? page.at(-1) : due.at(-1)
      this.#after = page.length < pageMax && due.length < looksMax ? '' : (last?.payment ?? '')
      const line = due.values()
      const lane = async (): Promise<void> => {
        for (const record of line) {
          this.#lookedMs.set(record.payment, this.clock.now())
          await this.look(record)
        }
      }
      await Promise.all(Array.from({ length: atOnceMax }, lane))
    } finally {
      this.#isWorking = false
    }
  }

  #isDue({ payment, endedMs = 0 }: PaymentRecord): boolean {
    const nowMs = this.clock.now()
    const pauseMs = Math.max(this.everyMs, (nowMs - endedMs) * agePart)
    // A clock that was set back must not end the looks.
    const passedMs = Math.abs(nowMs - (this.#lookedMs.get(payment) ?? 0))
    return passedMs >= pauseMs
  }
}
