import { type Clock, withinTime } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import type { Id } from '../../format/id.js'
import type { Charging, ItemCharge } from '../charging/charging.js'
import { saleFields } from '../charging/open-sales.js'
import type { Sale } from '../charging/sales.js'
import type { AnnouncedItem, ItemAnnouncer } from '../news/item-announcer.js'
import type { ReceiptNews } from '../news/receipt-news.js'
import { type ReceiptTerms, receiptOf } from '../records/receipt.js'
import type { AcceptedItem } from '../records/uploads.js'
import { jsonAnswer, type UploadAnswer } from '../requests/upload-answers.js'
import type { BundleScan } from './bundle-scan.js'
import type { ItemTableWriter } from './item-table-writer.js'
import type { SharedItems } from './shared-items.js'
import type { SignedReceipts } from './signed-receipts.js'
import { endingAnswer, waitingAnswer } from './waiting-answers.js'

export interface ItemAcceptanceParts {
  readonly scan: Pick<BundleScan, 'accepted'>
  /** Lists the item for the other machines of a cluster; absent: there are none. */
  readonly listing?: Pick<SharedItems, 'queue' | 'list'>
  readonly charging: Pick<Charging, 'settle'>
  readonly announcer: Pick<ItemAnnouncer, 'announce'>
  /** Resolves when what lies in an accepted bundle can be found, or takes too long. */
  readonly opened?: (bundle: Id) => Promise<void>
  /** Gets each receipt when it is issued for the first time. */
  readonly receiptNews?: Pick<ReceiptNews, 'announce'>
  readonly terms: ReceiptTerms
  readonly clock: Clock
  readonly logger: Pick<Log, 'error'>
}

/** What is known of an item when it is accepted, beside its record and its charge. */
export interface AcceptedWith {
  /** Same as `SharingOutcome.answerFields`; undefined: the item orders nothing about shared credits. */
  readonly answerFields: object | undefined
  readonly sale?: Sale
  /** Signature of its receipt; absent: not requested yet. */
  readonly signed?: Promise<Uint8Array> | undefined
  /** Writes the ids of the items in a bundle, in the transaction that accepts it. Absent: it is no bundle. */
  readonly writeIds?: (() => void) | undefined
}

/** Longest wait for the tables and the index, which refuse changes while the disk is full. */
const patienceMs = 5000

/** Accepts items that are stored and charged. */
export class ItemAcceptance {
  constructor(
    private readonly parts: ItemAcceptanceParts,
    private readonly tables: Pick<ItemTableWriter, 'write' | 'refusal'>,
    private readonly receipts: Pick<SignedReceipts, 'signature'>,
  ) {}

  /** The disk refuses changes of the tables. */
  get isHeldUp(): boolean {
    return this.tables.refusal(0) !== undefined
  }

  /**
   * Writes the item into the tables; then settles its charge, lists and announces it. Answers with its receipt when all of it is
   * done, or took too long. Of a charge that is in the log with the item, nothing waits for the tables, which get it later with
   * others.
   */
  async accept(
    accepted: AcceptedItem,
    charge: ItemCharge,
    announced: AnnouncedItem | undefined,
    { answerFields, sale, writeIds, signed = this.receipts.signature(accepted, 'paid') }: AcceptedWith,
  ): Promise<UploadAnswer> {
    const { charging, terms } = this.parts
    let isSettled = false
    const settle = (): void => {
      if (!isSettled) charging.settle(accepted.id, charge)
      isSettled = true
    }
    const record = (id: Id): void => {
      writeIds?.()
      this.#recordItem(accepted)
      charge.record(id)
    }
    const inTables = this.tables.write(accepted, { ...charge, record })
    const found = inTables.then((mayAnswer) => {
      if (!mayAnswer) return undefined
      settle()
      return this.#makeFindable(accepted, announced)
    })
    // Where it takes longer it goes on by itself, as does the listing of a large bundle.
    const foundOrLate = this.#inTime(found.catch((error) => this.#logFailure(accepted, error)))
    const [signature, mayAnswer] = await Promise.all([signed, this.#inTime(inTables), foundOrLate])
    if (mayAnswer === false) return endingAnswer
    // The record in the log suffices for a receipt. Tables and index follow when the disk accepts changes.
    if (mayAnswer === 'late' && charge.isLogged !== true) return waitingAnswer
    const receipt = receiptOf({ ...accepted, timestamp: accepted.receivedMs }, signature, terms)
    settle()
    this.parts.receiptNews?.announce(receipt, accepted)
    return jsonAnswer(200, { ...receipt, ...answerFields, ...saleFields(receipt, sale) }, sale?.paid?.lines)
  }

  /** What is written in the transaction that accepts the item, beside its row and its charge. */
  #recordItem({ id, isBundle }: AcceptedItem): void {
    if (isBundle === true) this.parts.scan.accepted(id)
    this.parts.listing?.queue(id)
  }

  /** Lists the item for other machines, announces it to the catalog, and waits until what lies in a bundle can be found. */
  async #makeFindable(accepted: AcceptedItem, announced: AnnouncedItem | undefined): Promise<void> {
    const { announcer, listing, opened } = this.parts
    await listing?.list(accepted)
    if (announced !== undefined) await announcer.announce(announced)
    if (accepted.isBundle === true) await opened?.(accepted.id)
  }

  /** The item is accepted: what fails then keeps neither its receipt nor its charge. */
  #logFailure({ id }: AcceptedItem, err: unknown): void {
    this.parts.logger.error({ err, id }, 'an accepted item could not be listed, announced or opened')
  }

  #inTime<T>(step: Promise<T>): Promise<T | 'late'> {
    return withinTime(this.parts.clock, patienceMs, step, 'late' as const)
  }
}
