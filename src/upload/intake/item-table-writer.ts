import { type Clock, pause } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import type { Id } from '../../format/id.js'
import type { Refusal } from '../../format/refusal.js'
import { diskRefusal } from '../../store/disk-error.js'
import { writePatiently } from '../../store/patient-write.js'
import type { GatewayNews } from '../news/gateway-news.js'
import type { ReceiptNews } from '../news/receipt-news.js'
import type { AcceptedItem, Uploads } from '../records/uploads.js'
import type { ItemCharge } from '../selling/charging.js'

export interface ItemTableParts {
  readonly uploads: Uploads
  /** Absent: no gateway on another machine. */
  readonly news?: Pick<GatewayNews, 'addItem' | 'wake'>
  /** Absent: no webhook gets receipts. */
  readonly receiptNews?: Pick<ReceiptNews, 'add'>
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

const over = (): void => undefined

interface Waiting {
  readonly charge: ItemCharge
  readonly done: (isWritten: boolean) => void
}

/** Writes accepted items into the tables, all that wait in one transaction. */
export class ItemTableWriter {
  readonly #waiting = new Map<Id, Waiting>()
  #writing: Promise<void> | undefined
  /** End of the last transaction, by the monotonic clock. */
  #writtenMs = Number.NEGATIVE_INFINITY
  /** Why the last transaction was undone. */
  #failure: unknown

  constructor(private readonly parts: ItemTableParts) {
    parts.uploads.pending.writtenBy((items) => this.#write(items))
  }

  /**
   * Resolves with true when the uploader may get its answer: at once where the log has all that a restart needs, else after the
   * transaction. Bundles wait for it, because their items are looked up next. False: the service ends, and its next start finds
   * the item in the log.
   */
  write(item: AcceptedItem, charge: ItemCharge): Promise<boolean> {
    const { pending } = this.parts.uploads
    const isFull = pending.count >= pendingMax
    pending.add(item)
    const written = new Promise<boolean>((done) => this.#waiting.set(item.id, { charge, done }))
    this.#writing ??= this.#writeAll()
    const mayAnswer = charge.isLogged === true && item.isBundle !== true && !isFull
    return mayAnswer ? Promise.resolve(true) : written
  }

  /** Why no more items may be accepted: the disk refuses changes, and `pendingMax` items wait. */
  get refusal(): Refusal | undefined {
    const isFull = this.parts.uploads.pending.count >= pendingMax
    return isFull && this.#failure !== undefined ? diskRefusal(this.#failure) : undefined
  }

  /** After `closing`: resolves when nothing is written any more. */
  async stopped(): Promise<void> {
    await this.#writing
  }

  async #writeAll(): Promise<void> {
    const { uploads, closing, logger, clock } = this.parts
    while (this.#waiting.size > 0) {
      await pause(Math.max(0, this.#writtenMs + gatherMs - clock.monotonic()), closing)
      // Another transaction may have written them.
      const write = (): void => {
        if (this.#waiting.size === 0) return
        try {
          uploads.environment.write(over)
        } catch (error) {
          this.#failure = error
          throw error
        }
      }
      if (await writePatiently(write, closing, logger)) continue
      for (const { done } of this.#waiting.values()) done(false)
      break
    }
    this.#writing = undefined
  }

  #write(items: readonly AcceptedItem[]): () => void {
    const { uploads, news, receiptNews } = this.parts
    for (const item of items) {
      this.#waiting.get(item.id)?.charge.record(item.id)
      news?.addItem(item.id)
      uploads.enter(item)
    }
    const committed = receiptNews?.add(items.map(({ id }) => id))
    return () => {
      committed?.()
      news?.wake()
      this.#writtenMs = this.parts.clock.monotonic()
      this.#failure = undefined
      this.parts.onAccepted?.(items)
      for (const { id } of items) {
        this.#waiting.get(id)?.done(true)
        this.#waiting.delete(id)
      }
    }
  }
}
