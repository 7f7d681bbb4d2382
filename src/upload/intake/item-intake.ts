import { withinTime } from '../../actor/clock.js'
import type { Id } from '../../format/id.js'
import type { ItemHeader } from '../../format/item.js'
import { isRefusal } from '../../format/refusal.js'
import { isOnlyForm } from '../../proof/signature-form.js'
import { tryWrite } from '../../store/disk-error.js'
import {
  answerOf,
  asAnswer,
  fixedAnswers,
  jsonAnswer,
  textAnswer,
  type UploadAnswer,
} from '../calls/upload-answers.js'
import type { Uploader } from '../calls/uploader.js'
import type { AnnouncedItem, ItemAnnouncer } from '../news/item-announcer.js'
import type { ReceiptNews } from '../news/receipt-news.js'
import { type Receipt, receiptOf } from '../records/receipt.js'
import { type AcceptedItem, isGivenUp } from '../records/uploads.js'
import { turnOf } from '../records/waiting-lines.js'
import { type ItemCharge, type Charging, isCharge, noCharge } from '../selling/charging.js'
import { recordUnsettled } from '../selling/credit-charging.js'
import type { Purchase, Sale } from '../selling/sales.js'
import { type ItemSelling, saleWords } from '../selling/selling.js'
import type { Sharing } from '../selling/sharing.js'
import { type ItemStore, storeItem, loggedUpload, type Spooled, notStored } from './store-item.js'
import type { ReadItem } from './item-reader.js'
import { type ItemTableParts, ItemTableWriter } from './item-table-writer.js'
import { KnownItems, type KnownItemsParts } from './known-items.js'
import type { Noting } from './noting.js'
import { digestMismatch } from './sent-digests.js'
import type { SharedItems } from './shared-items.js'
import { SignedReceipts, type SignedReceiptsParts } from './signed-receipts.js'
import { rankOf } from './signing.js'
import type { AcceptTerms } from './accept-terms.js'
import { TurnsById } from './turns-by-id.js'
import type { Verdicts } from './verdicts.js'
import { ending, indexBehind, unlisted, waiting } from './waiting-answers.js'

export interface ItemIntakeParts
  extends ItemTableParts,
    SignedReceiptsParts,
    Omit<KnownItemsParts, 'uploads'> {
  readonly noting: Pick<Noting, 'note' | 'drop' | 'accepted'>
  /** Lets the other machines of a cluster know; absent: there are none. */
  readonly listing?: Pick<SharedItems, 'wait' | 'list' | 'receiptOf' | 'sell' | 'unsold'>
  readonly verdicts: Pick<Verdicts, 'verdictNow'>
  readonly charging: Charging
  /** Absent: this service has no credits, and none can be shared. */
  readonly sharing?: Pick<Sharing, 'act'>
  readonly announcer: Pick<ItemAnnouncer, 'announce' | 'isFull'>
  /** Items that are paid for one by one. */
  readonly selling: ItemSelling
  /** Has accepted items, too; absent: this machine alone has them. */
  readonly store?: ItemStore
  /** Height of the chain's tip; undefined before the first node has reported it. */
  readonly height: () => number | undefined
  /** Resolves when what lies in an accepted bundle can be found, or takes too long. */
  readonly opened?: (bundle: Id) => Promise<void>
  /** Gets each receipt when it is issued for the first time. */
  readonly receiptNews?: Pick<ReceiptNews, 'add' | 'announce'>
}

/** What an accepted item is answered with. */
interface Ending {
  readonly done: object | undefined
  readonly sale?: Sale
  /** Signature of its receipt; absent: not requested yet. */
  readonly signed?: Promise<Uint8Array> | undefined
  /** Writes down what lies in it, in the transaction that accepts it. */
  readonly noted?: (() => void) | undefined
}

const over = (): void => undefined

/** Longest wait for the tables and the index, which refuse changes while the disk is full. */
const patienceMs = 5000
/** Number of blocks in which the receipt promises permanence. */
const deadlineBlocks = 200

/**
 * Accepts or refuses items that were read completely: signature, charge, disk, catalog, receipt, in this order. The receipt is
 * signed while the item is stored, and leaves when both are done.
 */
export class ItemIntake {
  /** Accepts in flight by id (or payment): a duplicate waits for the promise, then decides again. */
  readonly #turns = new TurnsById()
  readonly #tables: ItemTableWriter
  readonly #receipts: SignedReceipts
  readonly #items: KnownItems

  constructor(private readonly parts: ItemIntakeParts) {
    this.#receipts = new SignedReceipts(parts)
    this.#tables = new ItemTableWriter(parts)
    this.#items = new KnownItems(parts)
  }

  /** After `closing`: resolves when nothing is written any more. */
  stopped(): Promise<void> {
    return this.#tables.stopped()
  }

  /** The refusal of an item that could not be paid for, before its bytes arrive; undefined: it could be. */
  async foresee(
    header: ItemHeader,
    sizeBytes: number,
    uploader: Uploader,
  ): Promise<UploadAnswer | undefined> {
    const { selling, charging } = this.parts
    const known = this.#items.accepted(header.id) ?? this.#items.inBundle(header)
    if (known !== undefined || selling.sales.openOf(header.id) !== undefined) return undefined
    return this.#items.refused(header.id) ?? charging.foresee(header, sizeBytes, uploader)
  }

  /** The refusal of a free item whose receipt would wait for too long, before its bytes arrive. Undefined: it would not. */
  crowded(header: ItemHeader, sizeBytes: number, uploader: Uploader): UploadAnswer | undefined {
    return this.parts.turns?.crowded(header, sizeBytes, uploader)
  }

  /** Never rejects but for bugs. Nothing was charged where the answer is no receipt. */
  async accept(
    item: ReadItem,
    spooled: Spooled,
    uploader: Uploader,
    terms: AcceptTerms = {},
  ): Promise<UploadAnswer> {
    const { header, message } = item
    if (terms.digest !== undefined && terms.digest !== item.wholeDigest) {
      await terms.charge?.refund()
      return digestMismatch
    }
    const { id, signatureType, owner, signature } = header
    const crowded =
      (terms.charge ?? terms.purchase) ? undefined : this.crowded(header, item.sizeBytes, uploader)
    if (crowded !== undefined) return crowded
    const isValid = await this.parts.verdicts.verdictNow({ id, signatureType, owner, signature, message })
    if (isValid !== true) {
      await terms.charge?.refund()
      return fixedAnswers.invalidItem
    }
    // Another encoding of the same signature would have another id: the owner would pay, or share credits, twice.
    if (!isOnlyForm(signatureType, { owner, signature, message })) {
      await terms.charge?.refund()
      return fixedAnswers.otherForm
    }
    const stopped = await terms.onVerified?.(id)
    if (stopped !== undefined) {
      await terms.charge?.refund()
      return stopped
    }
    const alone = (): Promise<UploadAnswer> => this.#acceptOnce(item, spooled, uploader, terms)
    // Items that are signed here have a new id each time, so a duplicate is recognized by its payment.
    return terms.purchase === undefined
      ? alone()
      : this.#turns.run(`payment ${terms.purchase.payment}`, alone)
  }

  async #acceptOnce(
    item: ReadItem,
    spooled: Spooled,
    uploader: Uploader,
    terms: AcceptTerms,
  ): Promise<UploadAnswer> {
    const { id } = item.header
    const outcome = await this.#turns.run(id, async () => {
      const known =
        this.#known(item.header, terms) ?? (await this.#items.elsewhere(item.header, this.parts.height()))
      if (known === undefined) return this.#acceptNew(item, spooled, uploader, terms)
      await terms.charge?.refund()
      return known
    })
    // Only now: nobody waits for the turns of others who post it, too.
    return 'receivedMs' in outcome ? this.#receipts.repeated(outcome, uploader) : outcome
  }

  /** Continues a sale whose item is stored. Its payment may have been settled meanwhile. */
  resume(sale: Sale, purchase?: Purchase): Promise<UploadAnswer> {
    const { selling, uploads } = this.parts
    return this.#turns.run(sale.itemId, async () => {
      const open = selling.sales.openOf(sale.itemId)
      if (open !== undefined && purchase !== undefined) return this.#listAndSell(open, purchase)
      // Moves nothing: it asks for what became of the payment.
      if (open !== undefined) return this.#sell(open, selling.inquiry(open))
      const item = uploads.find(sale.itemId)
      return item === undefined
        ? fixedAnswers.unknownItem
        : this.#receipts.again(item, 200, selling.sales.find(sale.payment))
    })
  }

  /** The answer to an item that was accepted before, or whose receipt it is; undefined: it was not. */
  #known(
    header: ItemHeader,
    { purchase }: AcceptTerms,
  ): Promise<UploadAnswer> | UploadAnswer | AcceptedItem | undefined {
    const { id } = header
    const sold = purchase === undefined ? undefined : this.#soldBy(purchase, id)
    if (sold !== undefined) return sold
    const known = this.#items.accepted(id)
    if (known === undefined) return this.#items.inBundle(header)
    // After a kill between acceptance and announcement, queries would not find it before its block.
    const isUnknown = known.bundle === undefined && known.released !== true
    const announced = isUnknown ? this.parts.selling.announcementOf(known) : undefined
    if (announced !== undefined) void this.parts.announcer.announce(announced)
    return isGivenUp(known) ? this.#retry(known) : known
  }

  /** Queues an item again that was given up: it is paid and stored, and its sender still wants it permanent. */
  async #retry(item: AcceptedItem): Promise<UploadAnswer> {
    const { uploads } = this.parts
    const write = (): void =>
      uploads.environment.write(() => {
        const now = uploads.find(item.id)
        // Another upload of it may have done so.
        if (now !== undefined && isGivenUp(now)) uploads.retry(now)
      })
    const refusal = tryWrite(write)
    return refusal === undefined ? this.#receipts.again(item, 202) : answerOf(refusal)
  }

  /** A payment pays for one request only, and so does the identifier that a client gives it. */
  #soldBy(purchase: Purchase, id: Id): Promise<UploadAnswer> | undefined {
    const { sales } = this.parts.selling
    const { identifier, payment } = purchase
    const sale = sales.find(payment)
    const request = purchase.request(id)
    if (sale !== undefined && sale.request !== request) return purchase.refuse('used')
    const named = identifier === undefined ? undefined : sales.named(identifier)
    if (named !== undefined && named.request !== request) return purchase.refuse('identifier')
    const paid = [sale, named].find((one) => one?.paid !== undefined)
    const item = paid === undefined ? undefined : this.parts.uploads.find(paid.itemId)
    if (item !== undefined) return this.#receipts.again(item, 200, paid)
    const open = [sale, named].find((one) => one?.item !== undefined && one.itemId !== id)
    return open === undefined ? undefined : this.resume(open, open === sale ? purchase : undefined)
  }

  async #acceptNew(
    item: ReadItem,
    spooled: Spooled,
    uploader: Uploader,
    { charge: given, purchase, isSignedHere }: AcceptTerms,
  ): Promise<UploadAnswer> {
    const { charging, height, clock, selling, uploads } = this.parts
    const now = height()
    if (now === undefined) {
      await given?.refund()
      return textAnswer(503, 'No node has reported the height of the chain yet', '\r\nRetry-After: 5')
    }
    const refusal = this.#tables.refusal ?? this.parts.store?.refusal
    if (refusal !== undefined || this.parts.announcer.isFull) {
      await given?.refund()
      return refusal === undefined ? indexBehind : answerOf(refusal)
    }
    const { header, sizeBytes, digest, itemsInside } = item
    const open = await this.#openSale(header.id, purchase)
    if (open !== undefined) {
      await given?.refund()
      return 'status' in open ? open : this.#listAndSell(open, purchase as Purchase)
    }
    const charge =
      itemsInside > 0 && given?.withItems !== undefined
        ? await given.withItems(itemsInside)
        : (given ??
          (purchase === undefined
            ? await charging.charge(header, sizeBytes, uploader, itemsInside)
            : noCharge))
    if (!isCharge(charge)) return asAnswer(charge)
    // Before the item is stored: an item whose order cannot be carried out must be refused.
    const shared = isSignedHere === true ? undefined : await this.parts.sharing?.act(header, uploader)
    if (shared !== undefined && !('done' in shared)) {
      await charge.refund()
      return shared
    }
    const rank = rankOf(charge.free)
    // Whose order about credits was carried out has its turn.
    const turn = rank === 'free' && shared === undefined ? await this.parts.turns?.turn(uploader) : undefined
    if (turn !== undefined && typeof turn !== 'function') {
      await charge.refund()
      return turn
    }
    const promised = { receivedMs: clock.now(), deadlineHeight: now + deadlineBlocks }
    const logged = loggedUpload(item, charge, purchase, promised)
    const signed = purchase === undefined ? this.#receipts.signature(logged, rank) : undefined
    // A rejection before the item is stored must not count as unhandled: it is awaited later.
    const tried = signed?.then(over, over)
    void tried?.then(turn)
    const until = this.parts.signing.isBehind ? tried : undefined
    const stored = await storeItem(item, logged, spooled, this.parts, until)
    if (isRefusal(stored)) {
      await charge.refund()
      return notStored(stored)
    }
    const line = charge.free && turnOf(charge.free)
    const { free: _, ...meta } = logged
    const { noted, ...placed } = stored
    const accepted: AcceptedItem = { ...meta, ...placed, ...(line === undefined ? {} : { turn: line }) }
    if (purchase === undefined)
      return this.#record(
        accepted,
        charge,
        { header, sizeBytes, digest },
        { done: shared?.done, signed, noted },
      )
    uploads.environment.write(() => {
      noted?.()
      if (placed.stored !== undefined) uploads.stored.put(placed.stored, header.id)
    })
    const sale = selling.begin(accepted, purchase)
    return this.#listAndSell(sale, purchase, shared?.done, accepted)
  }

  /** The open sale of the item by this payment. A sale by another payment is ended first; its answer, unless it was unpaid. */
  async #openSale(id: Id, purchase: Purchase | undefined): Promise<Sale | UploadAnswer | undefined> {
    const { selling } = this.parts
    const open = selling.sales.openOf(id)
    if (open === undefined || open.payment === purchase?.payment) return open
    const answer = await this.#sell(open, selling.inquiry(open))
    // Unpaid: a new sale may begin.
    return answer.status === 402 ? undefined : answer
  }

  /** `fresh`: its settlement cannot have been requested yet. */
  async #listAndSell(
    sale: Sale,
    purchase: Purchase,
    done?: object,
    fresh?: AcceptedItem,
  ): Promise<UploadAnswer> {
    const { listing } = this.parts
    const isListed = sale.item?.isBundle !== true || (await listing?.sell(sale.item)) !== false
    if (isListed) return this.#sell(sale, purchase, done)
    if (fresh !== undefined) await this.#drop(sale, fresh)
    return unlisted
  }

  /** Settles the payment of a stored item, and accepts the item. */
  async #sell(sale: Sale, purchase: Purchase, done?: object): Promise<UploadAnswer> {
    const { selling } = this.parts
    const { item } = sale
    if (item === undefined) throw new Error(`the sale ${sale.payment} is over`)
    const paid = await purchase.collect(item.id)
    if ('answer' in paid) {
      if (!paid.isOpen) await this.#drop(sale, item)
      return paid.answer
    }
    const charge: ItemCharge = {
      winc: paid.winc,
      record: () => {
        recordUnsettled(selling.sales.environment, item.id)
        selling.sales.end(sale, paid)
      },
      refund: async () => undefined,
    }
    const { sale: _, ...sold } = item
    const announced = selling.announcementOf(item)
    return this.#record({ ...sold, winc: paid.winc }, charge, announced, { done, sale: { ...sale, paid } })
  }

  /** Nothing was paid for an item that is stored. */
  async #drop(sale: Sale, item: AcceptedItem): Promise<void> {
    const { selling, uploads, noting, listing } = this.parts
    const { stored, id } = item
    if (item.isBundle === true) await Promise.all([noting.drop(item), listing?.unsold(id)])
    selling.drop(sale)
    if (stored !== undefined) uploads.environment.write(() => uploads.stored.remove(stored, id))
  }

  /** Accepts an item that is stored and charged: records, announces, answers with the receipt. */
  async #record(
    accepted: AcceptedItem,
    charge: ItemCharge,
    announced: AnnouncedItem | undefined,
    { done, sale, noted, signed = this.#receipts.signature(accepted, 'paid') }: Ending,
  ): Promise<UploadAnswer> {
    const { announcer, charging, terms, clock, listing, noting } = this.parts
    const afterWriting = async (isWritten: boolean): Promise<boolean> => {
      if (isWritten) await listing?.list(accepted)
      if (isWritten && announced !== undefined) await announcer.announce(announced)
      if (isWritten && accepted.isBundle === true) await this.parts.opened?.(accepted.id)
      return isWritten
    }
    const record = (id: Id): void => {
      noted?.()
      if (accepted.isBundle === true) noting.accepted(id)
      listing?.wait(id)
      charge.record(id)
    }
    const written = this.#tables.write(accepted, { ...charge, record }).then(afterWriting)
    const [signature, isWritten] = await Promise.all([signed, withinTime(clock, patienceMs, written, 'late')])
    if (isWritten === false) return ending
    // The record in the log suffices for a receipt. Tables and index follow when the disk accepts changes.
    if (isWritten === 'late' && charge.isLogged !== true) return waiting
    const receipt = receiptOf({ ...accepted, timestamp: accepted.receivedMs }, signature, terms)
    charging.settle(accepted.id, charge)
    this.parts.receiptNews?.announce(receipt, accepted)
    return jsonAnswer(200, { ...receipt, ...done, ...saleWords(receipt, sale) }, sale?.paid?.lines)
  }

  /** The same receipt each time, because its signature is deterministic. */
  receipt(item: AcceptedItem): Promise<Receipt> {
    return this.#receipts.receipt(item)
  }
}
