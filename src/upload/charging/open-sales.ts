import { type Clock, elapsing, pause, toGrid, withinTime } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import type { Id } from '../../format/id.js'
import { acceptingMs, type UsdcPort } from '../../payment/credits-port.js'
import type { DurableLog } from '../../store/segments/durable-log.js'
import type { AnnouncedItem } from '../news/item-announcer.js'
import { readAnnouncement } from '../news/read-announcement.js'
import type { Receipt } from '../records/receipt.js'
import type { AcceptedItem, SaleFacts } from '../records/uploads.js'
import { diskAnswer, type UploadAnswer } from '../requests/upload-answers.js'
import { onWayMs, paymentOutcome, stillOpen } from './payment-outcome.js'
import { openSaleName, type Purchase, type Sale, type Sales, type Unsettled } from './sales.js'
import type { ServiceOfSeveral } from './several-services.js'

export interface OpenSalesParts {
  readonly sales: Sales
  readonly itemLog: Pick<DurableLog, 'folder' | 'release'>
  /** Absent: no USDC is taken. */
  readonly usdc?: Pick<UsdcPort, 'outcome'>
  /** Absent: this upload service is the only one. */
  readonly service?: Pick<ServiceOfSeveral, 'name'>
  readonly clock: Clock
  readonly logger: Log
}

const againMs = 2000
/** Sales that are continued at the same time. */
const drivenMax = 32
/** Longest wait for the payment service to answer that a payment is kept for its item. */
const keepMs = 5000
/** The row of an item is written in this time after its payment was kept, or not at all: the disk may stand still meanwhile. */
const rowMs = acceptingMs / 5

/** A payment that is kept for its item. */
export interface KeptPayment {
  /** Decimal. */
  readonly winc: string
  /** Whether the item may not be written down as accepted any more. */
  readonly isTooLate: () => boolean
}

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
    if (sale.item !== undefined) this.parts.itemLog.release(sale.item.place)
    // Who has sent it waits for an answer of the machine that it was taken over from.
    const { itemId: item, payment, service } = sale
    if (service !== undefined && service !== this.parts.service?.name)
      this.parts.logger.warn(
        { item, payment, service },
        'an upload that was taken over is not paid for: dropped',
      )
  }

  /** The announcement of a stored item. */
  announcementOf(item: AcceptedItem): AnnouncedItem | undefined {
    return readAnnouncement(this.parts.itemLog.folder, item)
  }

  /**
   * Looks up the state of a sale's payment, and moves nothing. An answer of status 402: nothing was paid. `isArrived`: the
   * payment service has answered the only order for it, so none is on its way. `isAccepting`: as in `UsdcPort.outcome`.
   */
  async became(
    sale: Sale,
    isArrived: boolean,
    accepting: { readonly isAccepting?: true } = {},
  ): ReturnType<Purchase['pay']> {
    const { usdc, clock } = this.parts
    const { payment, itemId, bytes, request, service = this.parts.service?.name } = sale
    if (usdc === undefined) return stillOpen
    const named = service === undefined ? {} : { service }
    const isOnWay = !isArrived && clock.now() - sale.openedMs < onWayMs
    return paymentOutcome(usdc, { payment, itemId, bytes, request, ...named, ...accepting }, isOnWay)
  }

  /**
   * Called right before the item of a settled payment is accepted. From then on nobody refunds the payment for some time, in
   * which the item may be written down (`isTooLate`). The payment is spent afterwards. An answer: it is refunded, or that is not
   * known now.
   */
  async keep(sale: Sale): Promise<KeptPayment | Unsettled> {
    const { clock } = this.parts
    const elapsedMs = elapsing(clock)
    const kept = await withinTime(clock, keepMs, this.became(sale, true, { isAccepting: true }), stillOpen)
    if ('answer' in kept) return kept
    return { winc: kept.winc, isTooLate: () => elapsedMs() > rowMs || !this.sales.isOpen(sale) }
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
        const name = openSaleName(sale)
        if (driven.has(name)) continue
        // Each has its turn: those that never end do not keep the ones behind them from theirs.
        if (driven.size >= drivenMax) await Promise.race([isOver, ...driven.values()])
        if (closing.aborted) break
        driven.set(
          name,
          act(sale).finally(() => driven.delete(name)),
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
