import { type Clock, pause } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import type { Id } from '../../format/id.js'
import type { Refusal } from '../../format/refusal.js'
import { diskRefusal } from '../../store/disk-error.js'
import { writePatiently } from '../../store/patient-write.js'
import type { GatewayNews } from '../news/gateway-news.js'
import type { ReceiptNews } from '../news/receipt-news.js'
import type { AcceptedItem, Uploads } from '../records/uploads.js'
import type { Charged } from '../selling/charging.js'

export interface ItemTableParts {
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
 * Between two transactions: one costs the thread some milliseconds, of which it waits for the disk in most. An item that comes
 * alone is written at once.
 */
const gatherMs = 50
/** Items that wait for a transaction without their uploaders; when so many do, those of more wait, too. */
const pendingMax = 1000

const over = (): void => undefined

interface Waiting {
  readonly charge: Charged
  readonly done: (isKept: boolean) => void
}

/** Writes down in the tables what was accepted, all that comes together in one transaction. */
export class ItemTableWriter {
  readonly #waiting = new Map<Id, Waiting>()
  #writing: Promise<void> | undefined
  /** When the last transaction was over, of the monotonic clock. */
  #writtenMs = Number.NEGATIVE_INFINITY
  /** Why the last transaction was undone. */
  #failure: unknown

  constructor(private readonly parts: ItemTableParts) {
    parts.uploads.pending.writtenBy((items) => this.#write(items))
  }

  /**
   * Resolves with true when its uploader can be told: at once where a kill would lose nothing, because the log says it all, else
   * when it is written down. What lies in a bundle is looked up after that. False: the service ends, and its next start finds it
   * in the log.
   */
  keep(item: AcceptedItem, charge: Charged): Promise<boolean> {
    const { pending } = this.parts.uploads
    const isFull = pending.count >= pendingMax
    pending.add(item)
    const written = new Promise<boolean>((done) => this.#waiting.set(item.id, { charge, done }))
    this.#writing ??= this.#writeAll()
    const mayBeTold = charge.isLogged === true && item.isBundle !== true && !isFull
    return mayBeTold ? Promise.resolve(true) : written
  }

  /** Why no more may be accepted: the disk takes no changes, and as many items as may wait for it do. */
  get refusal(): Refusal | undefined {
    const isFull = this.parts.uploads.pending.count >= pendingMax
    return isFull && this.#failure !== undefined ? diskRefusal(this.#failure) : undefined
  }

  /** After `closing`: resolves when nothing is written any more. */
  async stopped(): Promise<void> {
    await this.#writing
  }

  async #writeAll(): Promise<void> {
    const { uploads, closing, say, clock } = this.parts
    while (this.#waiting.size > 0) {
      await pause(Math.max(0, this.#writtenMs + gatherMs - clock.monotonic()), closing)
      // Another transaction may have taken them along.
      const write = (): void => {
        if (this.#waiting.size === 0) return
        try {
          uploads.environment.write(over)
        } catch (error) {
          this.#failure = error
          throw error
        }
      }
      if (await writePatiently(write, closing, say)) continue
      for (const { done } of this.#waiting.values()) done(false)
      break
    }
    this.#writing = undefined
  }

  #write(items: readonly AcceptedItem[]): () => void {
    const { uploads, news, receiptNews } = this.parts
    for (const item of items) {
      this.#waiting.get(item.id)?.charge.keep(item.id)
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
