import { type Clock, pause, toGrid, withinTime } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import type { Id } from '../../format/id.js'
import { isRefusal, refuse } from '../../format/refusal.js'
import type { CreditsPort, UsdcPort } from '../../payment/credits-port.js'
import type { DurableLog } from '../../store/segments/durable-log.js'
import { diskAnswer, fixedAnswers, textAnswer, type UploadAnswer } from '../calls/upload-answers.js'
import type { AnnouncedItem } from '../news/item-announcer.js'
import { readAnnouncement } from '../news/read-announcement.js'
import type { Receipt } from '../records/receipt.js'
import type { AcceptedItem, SaleFacts } from '../records/uploads.js'
import type { PaidFacts, Purchase, Sale, Sales, Unsettled } from './sales.js'
import type { ServiceOfSeveral } from './several-services.js'

export interface OpenSalesParts {
  readonly sales: Sales
  readonly log: Pick<DurableLog, 'folder' | 'release'>
  /** Absent: no USDC is taken. */
  readonly usdc?: Pick<UsdcPort, 'outcome'>
  /** Absent: nothing is reserved for items. */
  readonly credits?: Pick<CreditsPort, 'settle'>
  /** Absent: this upload service is the only one. */
  readonly service?: Pick<ServiceOfSeveral, 'name'>
  readonly clock: Clock
  readonly logger: Log
}

/** An order to settle that nobody knows of may still be on its way to a payment service elsewhere for so long. */
const onWayMs = 90_000
const againMs = 2000
/** Sales that are continued at the same time. */
const drivenMax = 32
/** For the payment service to answer that a payment is spent. */
const spendMs = 5000

const late = refuse('late', 'self', 'the payment service does not answer')

const settling = textAnswer(
  503,
  'A payment for this item is being settled: retry with the same payment',
  '\r\nRetry-After: 2',
)

const open: Unsettled = { answer: settling, isOpen: true }

/** Items that are paid in USDC and stored, and accepted when their payment was settled: each has a `Sale` until then. */
export class OpenSales {
  constructor(private readonly parts: OpenSalesParts) {}

  get sales(): Sales {
    return this.parts.sales
  }

  /** The item is kept for good: its payment may be settled. */
  begin(item: AcceptedItem, purchase: Purchase): Sale {
    const facts = saleFacts(purchase, item.id)
    const sale = { ...facts, openedMs: this.parts.clock.now(), itemId: item.id, item }
    this.sales.begin(sale)
    return sale
  }

  /** Nothing was paid for it. */
  drop(sale: Sale): void {
    this.sales.drop(sale)
    if (sale.item !== undefined) this.parts.log.release(sale.item.place)
  }

  /** The announcement of a stored item. */
  announcementOf(item: AcceptedItem): AnnouncedItem | undefined {
    return readAnnouncement(this.parts.log.folder, item)
  }

  /**
   * Looks up the state of a sale's payment, and moves nothing. An answer of status 402: nothing was paid. `isArrived`: the
   * payment service has answered the only order for it, so none is on its way.
   */
  async became(sale: Sale, isArrived: boolean): ReturnType<Purchase['settle']> {
    const { usdc, clock } = this.parts
    const { payment, itemId, bytes, service = this.parts.service?.name } = sale
    if (usdc === undefined) return open
    const named = service === undefined ? {} : { service }
    const outcome = await usdc.outcome({ payment, itemId, bytes, ...named })
    if (isRefusal(outcome)) return open
    if (outcome.paid) return outcome
    const mayCome = !isArrived && outcome.state === 'unknown' && clock.now() - sale.openedMs < onWayMs
    return outcome.state === 'open' || mayCome ? open : { answer: fixedAnswers.unpaid, isOpen: false }
  }

  /**
   * Before the item of a settled payment is accepted: spends what is reserved for it. Afterwards nobody refunds the payment,
   * however long the acceptance takes. An answer: it is refunded, or that is not known now.
   */
  async spend(sale: Sale, { winc }: Pick<PaidFacts, 'winc'>): Promise<Unsettled | undefined> {
    const { credits, clock } = this.parts
    if (credits === undefined || winc === '0') return undefined
    const spent = await withinTime(clock, spendMs, credits.settle(sale.itemId), late)
    if (isRefusal(spent)) return open
    if (spent.winc !== '0') return undefined
    const became = await this.became(sale, true)
    return 'answer' in became ? became : open
  }

  /** Continues open sales whose clients have left, until `closing`. `resume` decides one; undefined: its client is at it. */
  async drive(
    resume: (sale: Sale) => Promise<UploadAnswer | undefined>,
    closing: AbortSignal,
  ): Promise<void> {
    const driven = new Map<string, Promise<void>>()
    const act = async (sale: Sale): Promise<void> => {
      const { itemId: item, payment } = sale
      const answer = await resume(sale).catch(diskAnswer)
      if (answer?.status === 200)
        this.parts.logger.warn({ item, payment }, 'an upload was paid for: it is accepted')
    }
    const isOver = new Promise<void>((resolve) => closing.addEventListener('abort', () => resolve()))
    while (!closing.aborted) {
      // One that takes long, such as a large bundle that is listed, keeps no other one waiting.
      for (const sale of this.sales.open()) {
        const { payment } = sale
        if (driven.has(payment)) continue
        // Each has its turn: those that never end do not keep the ones behind them from theirs.
        if (driven.size >= drivenMax) await Promise.race([isOver, ...driven.values()])
        if (closing.aborted) break
        driven.set(
          payment,
          act(sale).finally(() => driven.delete(payment)),
        )
      }
      await pause(toGrid(againMs), closing)
    }
    await Promise.all(driven.values())
  }
}

/** The record of a sale in the log. */
export function saleFacts(purchase: Purchase, id: Id): SaleFacts {
  const { payment, units, bytes, identifier, service, signed } = purchase
  return {
    payment,
    units,
    bytes,
    signed,
    request: purchase.request(id),
    ...(identifier === undefined ? {} : { identifier }),
    ...(service === undefined ? {} : { service }),
  }
}

/** What receipts state of a sale. */
export type SoldFacts = Pick<Sale, 'payment' | 'units' | 'paid'>

/** Further fields in receipts of paid items, under the names of both releases of the network's own service. */
export function saleFields(receipt: Receipt, sale: SoldFacts | undefined): object {
  if (sale?.paid === undefined) return {}
  const { transaction, payer, network } = sale.paid
  return {
    payer,
    x402PaymentTxId: transaction,
    mUSDCPaid: sale.units,
    receipt,
    x402Payment: { paymentId: sale.payment, transactionHash: transaction, network, mode: 'payg' },
  }
}
