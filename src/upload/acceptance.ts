import { type Clock, pause } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Charged } from './charging.js'
import type { GatewayNews } from './gateway-news.js'
import { writePatiently } from './patient-write.js'
import type { ReceiptNews } from './receipt-news.js'
import type { AcceptedItem, Uploads } from './uploads.js'

export interface AcceptanceParts {
  readonly uploads: Uploads
  /** Absent: no gateway elsewhere is told. */
  readonly news?: Pick<GatewayNews, 'addItem' | 'wake'>
  /** Absent: nobody wants to be told of receipts. */
  readonly receiptNews?: Pick<ReceiptNews, 'add'>
  /** Is told of items that are accepted for good. */
  readonly onAccepted?: (items: readonly AcceptedItem[]) => void
  readonly clock: Clock
  readonly closing: AbortSignal
  readonly say: Pick<Log, 'error' | 'info'>
}

/**
 * Items that are kept within this time after a transaction are written down by the next one, because a transaction costs about as
 * much as one item's own. Their receipts are signed meanwhile, which takes longer. An item that comes alone never waits.
 */
const gatherMs = 5

const over = (): void => undefined

/** Writes down in the tables what was accepted, all that comes together in one transaction. */
export class Acceptance {
  readonly #waiting: {
    readonly item: AcceptedItem
    readonly charge: Charged
    readonly done: (isKept: boolean) => void
  }[] = []
  #isWriting = false
  /** When the last transaction was over, of the monotonic clock. */
  #writtenMs = Number.NEGATIVE_INFINITY

  constructor(private readonly parts: AcceptanceParts) {}

  /** Resolves with true when every thread can read it. False: the service ends, and its next start finds it in the log. */
  keep(item: AcceptedItem, charge: Charged): Promise<boolean> {
    return new Promise((done) => {
      this.#waiting.push({ item, charge, done })
      if (!this.#isWriting) void this.#writeAll()
    })
  }

  async #writeAll(): Promise<void> {
    this.#isWriting = true
    while (this.#waiting.length > 0) {
      const againMs = this.#writtenMs + gatherMs - this.parts.clock.monotonic()
      if (againMs > 0) await pause(againMs)
      const group = this.#waiting.splice(0)
      const items = group.map(({ item }) => item)
      const { uploads, closing, say, news, receiptNews } = this.parts
      let committed = over
      // The transaction may be undone, and run again: nothing but tables changes in it.
      const more = (): void => {
        for (const { item, charge } of group) {
          charge.keep(item.id)
          news?.addItem(item.id)
        }
        committed = receiptNews?.add(items.map(({ id }) => id)) ?? over
      }
      const write = (): void => uploads.accept(items, more)
      const isKept = await writePatiently(write, closing, say)
      if (isKept) {
        committed()
        news?.wake()
        this.#writtenMs = this.parts.clock.monotonic()
        this.parts.onAccepted?.(items)
      }
      for (const { done } of group) done(isKept)
    }
    this.#isWriting = false
  }
}
