import { type Clock, pause } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import type { Id } from '../../format/id.js'
import type { Refusal } from '../../format/refusal.js'
import { diskRefusal } from '../../store/disk-error.js'
import { writePatiently } from '../../store/patient-write.js'
import type { ItemCharge } from '../charging/charging.js'
import type { GatewayNews } from '../news/gateway-news.js'
import type { ReceiptNews } from '../news/receipt-news.js'
import type { PendingWriter } from '../records/pending-items.js'
import type { AcceptedItem, Uploads } from '../records/uploads.js'
import type { LateItems } from './late-items.js'

export interface ItemTableParts {
  readonly uploads: Uploads
  /** Absent: no gateway on another machine. */
  readonly news?: Pick<GatewayNews, 'addItem' | 'wake'>
  /** Absent: no webhook gets receipts. */
  readonly receiptNews?: Pick<ReceiptNews, 'add'>
  /** What was accepted before the start, and is not in the tables; absent: nothing. */
  readonly late?: Pick<LateItems, 'refusal'>
  /** Called with items after their transaction. */
  readonly onAccepted?: (items: readonly AcceptedItem[]) => void
  readonly clock: Clock
  readonly closing: AbortSignal
  readonly logger: Pick<Log, 'error' | 'info'>
}

/**
 * Pause between two transactions, because one costs the thread some milliseconds, mostly for the disk. A single item is written
 * at once.
 */
const gatherMs = 50
/** Items without a transaction whose uploaders have their answer. With so many, further uploaders wait for the transaction. */
const pendingMax = 1000

interface Waiting {
  readonly charge: ItemCharge
  readonly done: (isWritten: boolean) => void
}

/**
 * Writes accepted items into the tables. An item is pending first (`PendingItems`); all that are pending are written by the next
 * transaction, whoever begins it, or by a transaction of its own within `gatherMs`.
 */
export class ItemTableWriter implements PendingWriter<AcceptedItem> {
  readonly #waiting = new Map<Id, Waiting>()
  #flushing: Promise<void> | undefined
  /** End of the last transaction, by the monotonic clock. */
  #writtenMs = Number.NEGATIVE_INFINITY
  /** Why the last transaction was undone. */
  #failure: unknown
  /** To be called when the rows that were written last are committed: their receipts may be sent then. */
  #receiptsCommitted: (() => void) | undefined

  constructor(private readonly parts: ItemTableParts) {
    parts.uploads.pending.useWriter(this)
  }

  /**
   * Resolves with true when the uploader may get its answer: at once where the log has all that a restart needs, else after the
   * transaction. Bundles wait for it, because their items are looked up next. False: the service ends, and its next start finds
   * the item in the log; or it was too late for its charge (`isTooLate`).
   */
  write(item: AcceptedItem, charge: ItemCharge): Promise<boolean> {
    const { pending } = this.parts.uploads
    const isFull = pending.count >= pendingMax
    pending.add(item)
    const written = new Promise<boolean>((done) => this.#waiting.set(item.id, { charge, done }))
    this.#flushing ??= this.#flushAll()
    const mayAnswer = charge.isLogged === true && item.isBundle !== true && !isFull
    return mayAnswer ? Promise.resolve(true) : written
  }

  /** Why no more items may be accepted: the disk refuses changes, and so many items wait, or some of before the start. */
  refusal(waitingMax: number = pendingMax): Refusal | undefined {
    const late = this.parts.late?.refusal
    if (late !== undefined) return late
    const isFull = this.parts.uploads.pending.count >= waitingMax
    return isFull && this.#failure !== undefined ? diskRefusal(this.#failure) : undefined
  }

  /** After `closing`: resolves when nothing is written any more. */
  async stopped(): Promise<void> {
    await this.#flushing
  }

  async #flushAll(): Promise<void> {
    const { closing, logger, clock } = this.parts
    while (this.#waiting.size > 0) {
      await pause(Math.max(0, this.#writtenMs + gatherMs - clock.monotonic()), closing)
      if (await writePatiently(() => this.#flush(), closing, logger)) continue
      for (const { done } of this.#waiting.values()) done(false)
      break
    }
    this.#flushing = undefined
  }

  #flush(): void {
    // Another transaction may have written them, or left them out: the next item tries the disk.
    if (this.#waiting.size === 0) {
      this.#failure = undefined
      return
    }
    try {
      this.parts.uploads.writePending()
    } catch (error) {
      this.#failure = error
      throw error
    }
  }

  isOverdue({ id }: AcceptedItem): boolean {
    return this.#waiting.get(id)?.charge.isTooLate?.() === true
  }

  leftOut({ id }: AcceptedItem): void {
    this.#waiting.get(id)?.done(false)
    this.#waiting.delete(id)
  }

  writeRows(items: readonly AcceptedItem[]): void {
    const { uploads, news, receiptNews } = this.parts
    for (const item of items) {
      this.#waiting.get(item.id)?.charge.record(item.id)
      news?.addItem(item.id)
      uploads.enter(item)
    }
    this.#receiptsCommitted = receiptNews?.add(items.map(({ id }) => id))
  }

  rowsCommitted(items: readonly AcceptedItem[]): void {
    this.#receiptsCommitted?.()
    this.parts.news?.wake()
    this.#writtenMs = this.parts.clock.monotonic()
    this.#failure = undefined
    this.parts.onAccepted?.(items)
    for (const { id } of items) {
      this.#waiting.get(id)?.done(true)
      this.#waiting.delete(id)
    }
  }
}
