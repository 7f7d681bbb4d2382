import type { Id } from '../../format/id.js'
import type { FirstSale } from '../../payment/credits-port.js'
import { isSamePlace, type LogPlace } from '../../store/segments/log-file.js'
import type { ItemCharge } from '../charging/charging.js'
import type { OpenSales } from '../charging/open-sales.js'
import type { PaidFacts, Purchase, Sale, Unsettled } from '../charging/sales.js'
import { recordUnsettled } from '../charging/unsettled-items.js'
import { type AcceptedItem, isGone, type Uploads } from '../records/uploads.js'
import { fixedAnswers, refusalAnswer, type UploadAnswer } from '../requests/upload-answers.js'
import type { BundleScan } from './bundle-scan.js'
import type { ItemAcceptance } from './item-acceptance.js'
import type { KeyedLock } from './keyed-lock.js'
import type { SharedItems } from './shared-items.js'
import type { SignedReceipts } from './signed-receipts.js'
import type { ItemStore } from './store-item.js'
import { notHeld, unlisted, waitingAnswer } from './waiting-answers.js'

export interface SoldItemsParts {
  readonly uploads: Uploads
  /** Items that are paid for one by one. */
  readonly openSales: OpenSales
  readonly scan: Pick<BundleScan, 'drop'>
  /** Lists bundles for the other machines of a cluster; absent: there are none. */
  readonly listing?: Pick<SharedItems, 'listSale' | 'endSale' | 'receiptOf'>
  /** Until it is open, another machine may have taken over the items. Absent: no other one has them. */
  readonly objectStore?: Pick<ItemStore, 'refusal' | 'holds'>
}

/** How a sale is completed. */
interface Settling {
  /** Same as in `AcceptedWith`. */
  readonly answerFields?: object | undefined
  /** The address range that brought the item: by it listing has turns. */
  readonly client?: string | undefined
  /** The item where it was stored just now: nobody can have settled the payment yet. */
  readonly fresh?: AcceptedItem
}

/** A payment that was made. */
interface Paid {
  readonly paid: PaidFacts
  /** The sale under the name of the service that ordered it. */
  readonly ordered: Sale
}

/** Items that are paid for one by one (x402): first stored, then the payment is settled, then accepted. */
export class SoldItems {
  /** `lock`: by id of the item, with all others who accept items. */
  constructor(
    private readonly parts: SoldItemsParts,
    private readonly lock: KeyedLock,
    private readonly receipts: Pick<SignedReceipts, 'again'>,
    private readonly acceptance: Pick<ItemAcceptance, 'accept' | 'isHeldUp'>,
  ) {}

  /** Continues a sale whose item is stored. Its payment may have been settled meanwhile. */
  resume(sale: Sale, purchase?: Purchase): Promise<UploadAnswer> {
    const { openSales, uploads } = this.parts
    return this.lock.run(sale.itemId, async () => {
      const { sales } = openSales
      const item = uploads.find(sale.itemId)
      if (sales.isOpen(sale)) {
        const isOther = item !== undefined && !isGone(item) && !isCopyAt(sale, item.place)
        if (!isOther) return purchase ? this.complete(sale, purchase) : this.#settleAndAccept(sale)
        // Another copy is accepted, or about to be.
        if (sales.allOf(sale.itemId).some((copy) => isCopyAt(copy, item.place))) return waitingAnswer
        await this.#drop(sale)
      }
      return item === undefined
        ? fixedAnswers.unknownItem
        : this.receipts.again(item, 200, sales.sold(sale.payment))
    })
  }

  /** Same as `resume`, without a payment. Undefined: a request for the item is at work, and decides the sale. */
  resumeIdle(sale: Sale): Promise<UploadAnswer | undefined> {
    return this.lock.isTaken(sale.itemId) ? Promise.resolve(undefined) : this.resume(sale)
  }

  /**
   * Ends open sales of items that another machine has taken over, which decides them in the name of this one. `isLost`: of a
   * group of stored items, whether it has. Throws where the disk refuses.
   */
  async leave(isLost: (group: string) => boolean): Promise<void> {
    const { sales } = this.parts.openSales
    for (const sale of sales.open())
      await this.lock.run(sale.itemId, async () => {
        const stored = sale.item?.stored
        if (stored !== undefined && isLost(stored) && sales.isOpen(sale)) await this.#drop(sale)
      })
  }

  /**
   * The answer to an item whose payment, or whose identifier of a payment, was brought before: each pays for one request only.
   * Undefined: it was not.
   */
  answerTo(purchase: Purchase, id: Id): Promise<UploadAnswer> | undefined {
    const { sales } = this.parts.openSales
    const { identifier, payment } = purchase
    const sold = sales.sold(payment)
    const request = purchase.request(id)
    if (sold !== undefined && sold.request !== request) return purchase.refuse('used')
    const named = identifier === undefined ? undefined : sales.named(identifier)
    if (named !== undefined && named.request !== request) return purchase.refuse('identifier')
    const paid = [sold, named].find((one) => one?.paid !== undefined)
    const item = paid === undefined ? undefined : this.parts.uploads.find(paid.itemId)
    if (item !== undefined) return this.receipts.again(item, 200, paid)
    const brought = [sales.openFor(payment, request), named]
    const open = brought.find((one) => one?.item !== undefined && one.itemId !== id)
    return open === undefined ? undefined : this.resume(open, open.payment === payment ? purchase : undefined)
  }

  /** The open sale of the item by this payment. Sales by other payments end first; an answer: of one that was not unpaid. */
  async openSale(id: Id, purchase: Purchase | undefined): Promise<Sale | UploadAnswer | undefined> {
    let own: Sale | undefined
    for (const open of this.parts.openSales.sales.allOf(id)) {
      if (open.payment === purchase?.payment) {
        own ??= open
        continue
      }
      const answer = await this.#settleAndAccept(open)
      // Unpaid: a new sale may begin.
      if (answer.status !== 402) return answer
    }
    return own
  }

  /** Begins the sale of an item that was stored just now. `writeIds`: as in `StoredAt`. */
  sell(
    item: AcceptedItem,
    purchase: Purchase,
    { writeIds, ...settling }: Omit<Settling, 'fresh'> & { readonly writeIds: (() => void) | undefined },
  ): Promise<UploadAnswer> {
    const { uploads, openSales } = this.parts
    uploads.environment.write(() => {
      writeIds?.()
      if (item.stored !== undefined) uploads.stored.put(item.stored, item.id)
    })
    return this.complete(openSales.begin(item, purchase), purchase, { ...settling, fresh: item })
  }

  /** Lists a bundle for other machines, has the payment settled, and accepts the item. Answers with its receipt, or why not. */
  async complete(sale: Sale, purchase: Purchase, settling: Settling = {}): Promise<UploadAnswer> {
    const { listing } = this.parts
    const { client, fresh } = settling
    const isListed = sale.item?.isBundle !== true || (await listing?.listSale(sale.item, client)) !== false
    if (isListed) return this.#settleAndAccept(sale, purchase, settling)
    if (fresh !== undefined) await this.#drop(sale)
    return unlisted
  }

  /** The same for what is listed. Without `purchase` no money moves: what became of the payment is looked up. */
  async #settleAndAccept(
    sale: Sale,
    purchase?: Purchase,
    { answerFields, fresh }: Settling = {},
  ): Promise<UploadAnswer> {
    const { openSales } = this.parts
    const { item } = sale
    if (item === undefined) throw new Error(`the sale ${sale.payment} is over`)
    // Nothing moves for an item that could not be written down as accepted.
    if (this.acceptance.isHeldUp) return waitingAnswer
    const refusal = this.parts.objectStore?.refusal
    if (refusal !== undefined) return refusalAnswer(refusal)
    if (purchase !== undefined && !(await this.#isOurs(item))) return notHeld
    const outcome = await this.#outcome(sale, item, purchase, fresh !== undefined)
    if ('answer' in outcome) {
      if (!outcome.isOpen) await this.#drop(sale)
      const receipt = outcome.first && (await this.#firstReceipt(outcome.first))
      return receipt === undefined || receipt === 'none' ? outcome.answer : receipt
    }
    const { paid, ordered } = outcome
    // Nothing is kept for an item that could not be accepted: others may have the payment meanwhile.
    if (purchase === undefined && !(await this.#isOurs(item))) return notHeld
    const kept = await openSales.keep(ordered)
    if ('answer' in kept) {
      if (!kept.isOpen) await this.#drop(sale)
      return kept.answer
    }
    // Only after the payment was made: whoever takes over the item from now on finds it paid, and accepts it, too.
    if (!(await this.#isOurs(item))) return notHeld
    const { winc, isTooLate } = kept
    const charge: ItemCharge = {
      winc,
      isTooLate,
      record: () => {
        if (winc !== '0') recordUnsettled(openSales.sales.environment, item.id)
        openSales.sales.end(sale, paid)
      },
      refund: async () => undefined,
    }
    const { sale: _, ...sold } = item
    const announced = openSales.announcementOf(item)
    const accepted = { ...sold, winc: paid.winc }
    return this.acceptance.accept(accepted, charge, announced, { answerFields, sale: { ...sale, paid } })
  }

  /**
   * Settles the payment. An order may be refused while an earlier one, or the same one later, still settles: validity and prices
   * end meanwhile. So only the record of the payment decides that nothing can move. `isFirst`: no other order was sent for it.
   */
  async #outcome(
    sale: Sale,
    item: AcceptedItem,
    purchase: Purchase | undefined,
    isFirst: boolean,
  ): Promise<Paid | Unsettled> {
    const { openSales } = this.parts
    const asPaid = (paid: PaidFacts | Unsettled): Paid | Unsettled =>
      'answer' in paid ? paid : { paid, ordered: sale }
    if (purchase === undefined) return asPaid(await openSales.became(sale, false))
    const order = { request: sale.request, owner: item.owner }
    let answered = await purchase.pay(item.id, order)
    const first = 'answer' in answered ? answered.first : undefined
    // Only where its item is not accepted may the payment become credits.
    if (first !== undefined && (await this.#firstReceipt(first)) === 'none')
      answered = await purchase.pay(item.id, order, first.itemId)
    if (!('answer' in answered)) return { paid: answered, ordered: inNameOf(purchase, sale) }
    if (answered.isOpen || answered.first !== undefined) return answered
    const became = await openSales.became(sale, isFirst)
    return 'answer' in became && !became.isOpen ? answered : asPaid(became)
  }

  /** Whether this machine may still decide about an item. False: another one may have taken it over. */
  async #isOurs({ stored }: AcceptedItem): Promise<boolean> {
    const { objectStore } = this.parts
    return stored === undefined || objectStore === undefined || objectStore.holds(stored)
  }

  /**
   * The receipt of what another machine has sold for the same request. `none`: no machine that lists its items here has accepted
   * it. Undefined: that is not known now.
   */
  async #firstReceipt(first: FirstSale): Promise<UploadAnswer | 'none' | undefined> {
    const { listing, uploads } = this.parts
    const facts = listing === undefined ? 'none' : await listing.receiptOf(first.itemId as Id)
    if (facts === undefined || facts === 'none') return facts
    // A machine that has lost its disk has the row, and not the bytes.
    if (facts.isOwn === true && uploads.find(first.itemId as Id) === undefined) return 'none'
    const { itemId, owner, units, ...paid } = first
    return this.receipts.again({ ...facts, id: itemId as Id, owner }, 200, {
      units,
      payment: paid.payment,
      paid: { ...paid, winc: facts.winc },
    })
  }

  /** Nothing was paid for this copy of a stored item. What is known of the items in it stays while there is another copy. */
  async #drop(sale: Sale): Promise<void> {
    const { openSales, uploads, scan, listing } = this.parts
    const { item } = sale
    if (item === undefined) throw new Error(`the sale ${sale.payment} is over`)
    const { stored, id } = item
    const known = uploads.find(id)
    const isOnly = (known === undefined || isGone(known)) && openSales.sales.allOf(id).length < 2
    if (item.isBundle === true && isOnly) await Promise.all([scan.drop(item), listing?.endSale(id)])
    openSales.drop(sale)
    if (stored !== undefined) uploads.environment.write(() => uploads.stored.remove(stored, id))
  }
}

/** The sale as this service has ordered its payment: it may have been begun by one from which the item was taken over. */
function inNameOf({ service }: Purchase, { service: _, ...sale }: Sale): Sale {
  return service === undefined ? sale : { ...sale, service }
}

function isCopyAt({ item }: Sale, place: LogPlace): boolean {
  return item !== undefined && isSamePlace(item.place, place)
}
