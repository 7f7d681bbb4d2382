import type { Clock } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import type { Id } from '../../format/id.js'
import type { ItemHeader } from '../../format/item.js'
import { isRefusal } from '../../format/refusal.js'
import { isOnlyForm } from '../../proof/signature-form.js'
import { tryWrite } from '../../store/disk-error.js'
import {
  type ChargeOutcome,
  type Charging,
  type ItemCharge,
  isCharge,
  noCharge,
} from '../charging/charging.js'
import type { OpenSales } from '../charging/open-sales.js'
import type { Purchase, Sale } from '../charging/sales.js'
import type { Sharing } from '../charging/sharing.js'
import type { GatewayNews } from '../news/gateway-news.js'
import type { ItemAnnouncer } from '../news/item-announcer.js'
import type { ReceiptNews } from '../news/receipt-news.js'
import type { Receipt, ReceiptTerms } from '../records/receipt.js'
import { type AcceptedItem, isGivenUp, type Uploads } from '../records/uploads.js'
import { turnOf } from '../records/waiting-lines.js'
import {
  asAnswer,
  fixedAnswers,
  refusalAnswer,
  textAnswer,
  type UploadAnswer,
} from '../requests/upload-answers.js'
import type { Uploader } from '../requests/uploader.js'
import type { AcceptTerms } from './accept-terms.js'
import type { BundleScan } from './bundle-scan.js'
import type { FreeTurns } from './free-turns.js'
import { type AcceptedWith, ItemAcceptance } from './item-acceptance.js'
import type { ReadItem } from './item-reader.js'
import { ItemTableWriter } from './item-table-writer.js'
import { KeyedLock } from './keyed-lock.js'
import { KnownItems } from './known-items.js'
import type { LateItems } from './late-items.js'
import { digestMismatch } from './sent-digests.js'
import type { SharedItems } from './shared-items.js'
import { SignedReceipts } from './signed-receipts.js'
import { rankOf, type Signing } from './signing.js'
import { SoldItems } from './sold-items.js'
import { type ItemStore, loggedUpload, notStored, type Spooled, storeItem } from './store-item.js'
import type { Verdicts } from './verdicts.js'
import { indexBehind } from './waiting-answers.js'

/** All that accepting an item needs. `ItemIntake` gives its parts (`ItemTableWriter`, `SoldItems` and others) what they use. */
export interface ItemIntakeParts {
  readonly uploads: Uploads
  /** Items that are paid for one by one. */
  readonly openSales: OpenSales
  readonly scan: Pick<BundleScan, 'scan' | 'drop' | 'accepted'>
  /** Lists items for the other machines of a cluster; absent: there are none. */
  readonly listing?: Pick<SharedItems, 'queue' | 'list' | 'receiptOf' | 'listSale' | 'endSale'>
  /** Whether the chain has an item, as far as the index of this program knows. Absent: there is no index. */
  readonly isInBlock?: (id: Id) => boolean
  /** What was accepted before the start, and is not in the tables; absent: nothing. */
  readonly late?: Pick<LateItems, 'refusal'>
  readonly verdicts: Pick<Verdicts, 'verdictNow'>
  readonly charging: Charging
  /** Absent: this service has no credits, and none can be shared. */
  readonly sharing?: Pick<Sharing, 'act'>
  /** Has accepted items, too; absent: this machine alone has them. */
  readonly objectStore?: ItemStore
  /** Height of the chain's tip; undefined before the first node has reported it. */
  readonly height: () => number | undefined
  readonly signing: Pick<Signing, 'receipt' | 'isBehind'>
  /** Turns of items that nobody pays for. Absent: they need none. */
  readonly freeTurns?: FreeTurns
  readonly terms: ReceiptTerms
  /** To the catalog of this program. */
  readonly announcer: Pick<ItemAnnouncer, 'announce' | 'isFull'>
  /** To a gateway on another machine; absent: there is none. */
  readonly news?: Pick<GatewayNews, 'addItem' | 'wake'>
  /** Gets each receipt when it is issued for the first time. Absent: no webhook gets receipts. */
  readonly receiptNews?: Pick<ReceiptNews, 'add' | 'announce'>
  /** Called with items after the transaction that accepts them. */
  readonly onAccepted?: (items: readonly AcceptedItem[]) => void
  /** Resolves when what lies in an accepted bundle can be found, or takes too long. */
  readonly opened?: (bundle: Id) => Promise<void>
  readonly clock: Clock
  readonly closing: AbortSignal
  readonly logger: Pick<Log, 'error' | 'info'>
}

const noop = (): void => undefined

/** Number of blocks in which the receipt promises permanence. */
const deadlineBlocks = 200

const noHeight = textAnswer(503, 'No node has reported the height of the chain yet', '\r\nRetry-After: 5')

/** An item that is stored and not accepted yet. */
interface StoredItem extends Pick<AcceptedWith, 'answerFields' | 'signed' | 'writeIds'> {
  readonly accepted: AcceptedItem
}

/**
 * Accepts or refuses items that were read completely: signature, charge, disk, catalog, receipt, in this order. The receipt is
 * signed while the item is stored, and leaves when both are done.
 */
export class ItemIntake {
  /** Items that are being taken, by id (or payment): a duplicate waits for the promise, then decides again. */
  readonly #lock = new KeyedLock()
  readonly #tables: ItemTableWriter
  readonly #receipts: SignedReceipts
  readonly #items: KnownItems
  readonly #acceptance: ItemAcceptance
  readonly #sold: SoldItems

  constructor(private readonly parts: ItemIntakeParts) {
    this.#receipts = new SignedReceipts(parts)
    this.#tables = new ItemTableWriter(parts)
    this.#items = new KnownItems(parts)
    this.#acceptance = new ItemAcceptance(parts, this.#tables, this.#receipts)
    this.#sold = new SoldItems(parts, this.#lock, this.#receipts, this.#acceptance)
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
    const { openSales, charging } = this.parts
    const known = this.#items.accepted(header.id) ?? this.#items.inOpenedBundle(header)
    if (known !== undefined || openSales.sales.openOf(header.id) !== undefined) return undefined
    return this.#items.refused(header.id) ?? charging.foresee(header, sizeBytes, uploader)
  }

  /** The refusal of a free item whose receipt would wait for too long, before its bytes arrive. Undefined: it would not. */
  crowded(header: ItemHeader, sizeBytes: number, uploader: Uploader): UploadAnswer | undefined {
    return this.parts.freeTurns?.crowded(header, sizeBytes, uploader)
  }

  /** Answers an item with its receipt, or why it is not accepted: nothing was charged then. Never rejects but for bugs. */
  async take(
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
    const alone = (): Promise<UploadAnswer> => this.#takeOnce(item, spooled, uploader, terms)
    // Items that are signed here have a new id each time, so a duplicate is recognized by its payment and what it is to pay for.
    // Not by the payment alone: strangers who bring it would keep its payer waiting.
    const { purchase } = terms
    return purchase === undefined
      ? alone()
      : this.#lock.run(`payment ${purchase.payment} ${purchase.request(id)}`, alone)
  }

  async #takeOnce(
    item: ReadItem,
    spooled: Spooled,
    uploader: Uploader,
    terms: AcceptTerms,
  ): Promise<UploadAnswer> {
    const { id } = item.header
    const outcome = await this.#lock.run(id, async () => {
      const damaged = terms.purchase === undefined ? this.#items.damaged(id) : undefined
      if (damaged !== undefined) return this.#mend(damaged, item, spooled, terms)
      const known =
        this.#known(item.header, terms) ?? (await this.#items.elsewhere(item.header, this.parts.height()))
      if (known === undefined) return this.#takeNew(item, spooled, uploader, terms)
      await terms.charge?.refund()
      return known
    })
    // Only now: nobody waits for the turns of others who post it, too.
    return 'receivedMs' in outcome ? this.#receipts.repeated(outcome, uploader) : outcome
  }

  /** The answer to an item that was accepted before, or whose receipt it is; undefined: it was not. */
  #known(
    header: ItemHeader,
    { purchase }: AcceptTerms,
  ): Promise<UploadAnswer> | UploadAnswer | AcceptedItem | undefined {
    const { id } = header
    const sold = purchase === undefined ? undefined : this.#sold.answerTo(purchase, id)
    if (sold !== undefined) return sold
    const known = this.#items.accepted(id)
    if (known === undefined) return this.#items.inOpenedBundle(header)
    // After a kill between acceptance and announcement, queries would not find it before its block.
    const isUnknown = known.bundle === undefined && known.released !== true
    const announced = isUnknown ? this.parts.openSales.announcementOf(known) : undefined
    if (announced !== undefined) void this.parts.announcer.announce(announced)
    return isGivenUp(known) ? this.#retry(known) : known
  }

  /**
   * Stores an accepted item once more: its bytes take the place of those that the disk has lost. Nothing is charged, for it was
   * paid for. The place of the lost ones is released with the next start.
   */
  async #mend(
    known: AcceptedItem,
    item: ReadItem,
    spooled: Spooled,
    { charge }: AcceptTerms,
  ): Promise<UploadAnswer | AcceptedItem> {
    await charge?.refund()
    const { uploads, logger } = this.parts
    const { id, winc, heldAs } = known
    const paid = { ...noCharge, winc, ...(heldAs === undefined ? {} : { heldAs }) }
    const stored = await storeItem(
      item,
      loggedUpload(item, paid, undefined, known),
      spooled,
      this.parts,
      undefined,
    )
    if (isRefusal(stored)) return notStored(stored)
    const { writeIds, ...placed } = stored
    const write = (): void =>
      uploads.environment.write(() => {
        writeIds?.()
        const { stored: before, ...now } = uploads.find(id) ?? known
        if (before !== undefined) uploads.stored.remove(before, id)
        uploads.put({ ...now, ...placed })
        if (placed.stored !== undefined) uploads.stored.put(placed.stored, id)
      })
    const refusal = tryWrite(write)
    if (refusal !== undefined) return refusalAnswer(refusal)
    // The next start releases what lies at another place than the row states: after a power cut it must state this one.
    await uploads.environment.flushed()
    uploads.unreadable.remove(id)
    logger.info({ id }, 'an upload that was damaged on the disk was posted again')
    return known
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
    return refusal === undefined ? this.#receipts.again(item, 202) : refusalAnswer(refusal)
  }

  /**
   * Accepts an item that is not known here: may it be accepted now, what pays for it, the disk, then the tables and the receipt.
   * Until the item is stored each step may refuse it, and what was charged is refunded. One that is paid for in USDC ends in
   * `SoldItems`, which has its payment settled after the item is stored.
   */
  async #takeNew(
    item: ReadItem,
    spooled: Spooled,
    uploader: Uploader,
    terms: AcceptTerms,
  ): Promise<UploadAnswer> {
    const { purchase } = terms
    const { header, sizeBytes, digest } = item
    const client = uploader.address
    const height = this.parts.height()
    const refused = height === undefined ? noHeight : this.#refusedNow(purchase)
    if (height === undefined || refused !== undefined) {
      await terms.charge?.refund()
      return refused ?? noHeight
    }
    const open = await this.#sold.openSale(header.id, purchase)
    if (open !== undefined) {
      await terms.charge?.refund()
      return 'status' in open ? open : this.#sold.complete(open, purchase as Purchase, { client })
    }
    const charge = await this.#charged(item, uploader, terms)
    if (!isCharge(charge)) return asAnswer(charge)
    const stored = await this.#store(item, spooled, uploader, terms, { charge, height })
    if ('status' in stored) {
      await charge.refund()
      return stored
    }
    const { accepted, writeIds, answerFields, signed } = stored
    if (purchase !== undefined) return this.#sold.sell(accepted, purchase, { writeIds, answerFields, client })
    const announced = { header, sizeBytes, digest }
    return this.#acceptance.accept(accepted, charge, announced, { answerFields, signed, writeIds })
  }

  /** Why no item may be accepted now. No money moves for an item whose row would wait. */
  #refusedNow(purchase: Purchase | undefined): UploadAnswer | undefined {
    const waitingMax = purchase === undefined ? undefined : 0
    const refusal = this.#tables.refusal(waitingMax) ?? this.parts.objectStore?.refusal
    if (refusal !== undefined) return refusalAnswer(refusal)
    return this.parts.announcer.isFull ? indexBehind : undefined
  }

  /** What is reserved for the item: before, by who sends it in parts; now; or nothing yet, where it is sold. */
  async #charged(
    { header, sizeBytes, itemsInside }: ReadItem,
    uploader: Uploader,
    { charge: reserved, purchase }: AcceptTerms,
  ): Promise<ChargeOutcome> {
    if (reserved !== undefined)
      return itemsInside > 0 && reserved.withItems !== undefined ? reserved.withItems(itemsInside) : reserved
    if (purchase !== undefined) return noCharge
    return this.parts.charging.charge(header, sizeBytes, uploader, itemsInside)
  }

  /**
   * Stores an item that is charged. Before, the order about shared credits in its tags is carried out: where it cannot be, the
   * item is refused. The receipt is signed meanwhile. An answer: it is not stored.
   */
  async #store(
    item: ReadItem,
    spooled: Spooled,
    uploader: Uploader,
    { purchase, isSignedHere }: AcceptTerms,
    { charge, height }: { readonly charge: ItemCharge; readonly height: number },
  ): Promise<StoredItem | UploadAnswer> {
    const { sharing, freeTurns, signing, clock } = this.parts
    const order = isSignedHere === true ? undefined : await sharing?.act(item.header, uploader)
    if (order !== undefined && !('answerFields' in order)) return order
    const rank = rankOf(charge.free)
    // Receipts that nobody pays for wait for a turn of the signers. Whose order was carried out does not wait.
    const mustWait = rank === 'free' && order === undefined
    const leaveSigners = mustWait ? await freeTurns?.turn(uploader) : undefined
    if (leaveSigners !== undefined && typeof leaveSigners !== 'function') return leaveSigners
    const promised = { receivedMs: clock.now(), deadlineHeight: height + deadlineBlocks }
    const logged = loggedUpload(item, charge, purchase, promised)
    // The receipt of a sold item is signed when its payment is settled.
    const signed = purchase === undefined ? this.#receipts.signature(logged, rank) : undefined
    // It never rejects: `signed` is awaited after the item is stored, and its failure must not count as unhandled until then.
    const signingOver = signed?.then(noop, noop)
    void signingOver?.then(leaveSigners)
    const until = signing.isBehind ? signingOver : undefined
    const stored = await storeItem(item, logged, spooled, this.parts, until)
    if (isRefusal(stored)) return notStored(stored)
    const { writeIds, ...placed } = stored
    const { free: _, ...record } = logged
    const bundleTurn = charge.free && turnOf(charge.free)
    const waiting = bundleTurn === undefined ? {} : { turn: bundleTurn }
    const accepted: AcceptedItem = { ...record, ...placed, ...waiting }
    return { accepted, writeIds, answerFields: order?.answerFields, signed }
  }

  /** Continues an open sale (`SoldItems.resumeIdle`). Undefined: a request for its item is at work, and decides it. */
  resumeIdle(sale: Sale): Promise<UploadAnswer | undefined> {
    return this.#sold.resumeIdle(sale)
  }

  /** Ends the open sales of items that another machine has taken over (`SoldItems.leave`). */
  leaveSales(isLost: (group: string) => boolean): Promise<void> {
    return this.#sold.leave(isLost)
  }

  /** The same receipt each time, because its signature is deterministic. */
  receipt(item: AcceptedItem): Promise<Receipt> {
    return this.#receipts.receipt(item)
  }
}
