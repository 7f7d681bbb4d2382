import { type Id, idBytes, idOfBytes } from '../../format/id.js'
import { tryWrite } from '../../store/disk-error.js'
import type { Environment, Table } from '../../store/lmdb.js'
import type { Receipt } from '../records/receipt.js'
import type { AcceptedItem, Uploads } from '../records/uploads.js'

export interface ReceiptNewsParts {
  readonly environment: Environment
  readonly uploads: Pick<Uploads, 'find'>
  /** Writes an event to disk before it returns. */
  readonly announce: (receipt: Receipt, item: AcceptedItem) => void
}

const none = new Uint8Array(0)
/** Receipts that are signed again at once, after a start. */
const atOnce = 64

/**
 * Sends each receipt to the webhooks when it is issued for the first time. Receipts to be sent are recorded in the transaction
 * that accepts their items, so that a kill loses none. One may be sent twice.
 */
export class ReceiptNews {
  readonly #table: Table
  /** Announced, and removed with the next transaction: one of their own would cost as much as the acceptance. */
  readonly #announced: Uint8Array[] = []

  constructor(private readonly parts: ReceiptNewsParts) {
    this.#table = parts.environment.table('untold')
  }

  /** Only inside a `write` of the environment, which may be undone and run again. Call the result when that is committed. */
  add(ids: readonly Id[]): () => void {
    for (const id of ids) this.#table.put(idBytes(id), none)
    for (const key of this.#announced) this.#table.remove(key)
    const removed = this.#announced.length
    return () => void this.#announced.splice(0, removed)
  }

  announce(receipt: Receipt, item: AcceptedItem): void {
    // What the disk refuses is sent by the next process.
    const refusal = tryWrite(() => this.parts.announce(receipt, item))
    if (refusal === undefined) this.#announced.push(idBytes(item.id))
  }

  /** Sends what an earlier process did not. `receipt` signs again: it is the same each time. */
  async catchUp(receipt: (item: AcceptedItem) => Promise<Receipt>): Promise<void> {
    const { environment, uploads } = this.parts
    const keys = [...this.#table.keys({})]
    for (let from = 0; from < keys.length; from += atOnce) {
      const some = keys.slice(from, from + atOnce)
      const items = some.flatMap((key) => uploads.find(idOfBytes(key)) ?? [])
      const receipts = await Promise.all(items.map(receipt))
      for (const [at, item] of items.entries()) this.announce(receipts[at] as Receipt, item)
      // While the disk is full they are sent again.
      tryWrite(() =>
        environment.write(() => {
          for (const key of some) this.#table.remove(key)
        }),
      )
    }
  }
}
