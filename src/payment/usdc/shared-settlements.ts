import { BucketsUnreachable } from '../../admission/buckets.js'
import type { PaymentOrder } from '../../admission/cashier-messages.js'
import { type PaymentRecord, paymentRecordText, readPaymentRecord } from '../../admission/payment-records.js'
import type { PaymentClaim, SettlementClaims } from '../../admission/settlement-claims.js'
import type { Fence } from '../../ledger/lead.js'
import {
  commitTriesMax,
  isLedgerGone,
  isRejected,
  type LedgerRecord,
  type MoneyLedger,
  type RecordChange,
} from '../../ledger/ledger-port.js'
import { isSale, readSaleBeneficiary } from './sale-beneficiary.js'
import { usdcTransferId } from './usdc-transfers.js'

const kind = 'x402-asked'
/** By payer and identifier (extension payment-identifier of x402): the sale that has it. */
const identifierKind = 'x402-identifier'
/** Records looked at in one go. */
const pageMax = 500

export interface SharedSettlementsOptions {
  /** What this service is called among those with the same ledger; the same after a restart. */
  readonly self: string
  /** Longer than one attempt to settle. A service that requested earlier has died, or tries again. */
  readonly leftMs: number
}

/** Record of a requested settlement in the ledger. */
export interface RequestedSettlement {
  /** The service that requested it. */
  readonly asker: string
  readonly record: PaymentRecord
}

/** The sale of an item that a payer has given an identifier. */
export interface IdentifiedSale {
  readonly payment: string
  readonly itemId: string
  /** As in `UsdcOrder.sale`. */
  readonly request: string
}

type Identified = Pick<PaymentRecord, 'payment' | 'payer' | 'beneficiary'>

/**
 * Settlements that the payment services of one ledger have requested. Each is in the ledger completely before it is requested. If
 * its service and its disk are lost in between, another service must find out whether the payment was settled. In the same commit
 * its sale gets its identifier, which no other payment gets while this one may settle, or has settled.
 */
export class SharedSettlements implements SettlementClaims {
  constructor(
    private readonly ledger: MoneyLedger,
    private readonly now: () => number,
    private readonly options: SharedSettlementsOptions,
  ) {}

  /** The name of this service. */
  get self(): string {
    return this.options.self
  }

  async commonName(): Promise<string> {
    return kind
  }

  async claim(order: PaymentOrder): Promise<void> {
    const { signature, asker, ...facts } = order
    const record: PaymentRecord = { ...facts, state: 'asked', askedMs: this.now() }
    const key = this.#keyOf(order.payment)
    const value = paymentRecordText(record)
    await reachable(async () => {
      for (let tries = 0; tries < commitTriesMax; tries += 1) {
        const known = await this.ledger.record(kind, key)
        const identifiers = await this.#identifying(order)
        const records = [{ kind, key, value, expected: known?.version ?? 0 }, ...identifiers]
        const isDone = !isRejected(await this.ledger.commit({ transfers: [], records }))
        // Refused only where this service requests twice at the same time: both records are the same.
        if (isDone || identifiers.length === 0) return
      }
      throw new BucketsUnreachable('others change the same payment-identifier')
    })
  }

  async clear(payment: string): Promise<void> {
    await reachable(async () => {
      for (let tries = 0; tries < commitTriesMax; tries += 1) {
        const known = await this.ledger.record(kind, this.#keyOf(payment))
        if (known === undefined || (await this.#remove(known))) return
      }
    })
  }

  look(payment: string): Promise<PaymentClaim> {
    return reachable(async (): Promise<PaymentClaim> => {
      const credited = await this.ledger.transfer(usdcTransferId(payment))
      if (credited !== undefined) {
        const { reference: transaction, about } = credited
        const { tokenQuantity: units } = about
        return { state: 'credited', transaction, ...(units === undefined ? {} : { units }) }
      }
      const byOthers = (await this.ledger.records(kind, `${payment} `, '', pageMax))
        .map(read)
        .filter(({ asker }) => asker !== this.self)
      if (byOthers.length === 0) return { state: 'nobody' }
      const youngestMs = Math.max(...byOthers.map(({ record }) => record.askedMs))
      return { state: this.now() - youngestMs < this.options.leftMs ? 'pending' : 'left' }
    })
  }

  /** The record of a payment that any service of the ledger has requested, and whose end is not known. */
  async requested(payment: string): Promise<PaymentRecord | undefined> {
    const [found] = await this.ledger.records(kind, `${payment} `, '', 1)
    return found && read(found).record
  }

  /** The sale that has the identifier of a payer: its payment has settled, or may settle. */
  async identified(payer: string, identifier: string): Promise<IdentifiedSale | undefined> {
    const found = await this.ledger.record(identifierKind, identifierKey(payer, identifier))
    if (found === undefined) return undefined
    const sale = JSON.parse(found.value) as IdentifiedSale
    return (await this.#mayPay(sale.payment)) ? sale : undefined
  }

  /** Requested is looked at first: what is credited meanwhile is seen by the transfer. */
  async #mayPay(payment: string): Promise<boolean> {
    if ((await this.requested(payment)) !== undefined) return true
    return (await this.ledger.transfer(usdcTransferId(payment))) !== undefined
  }

  /** Gives the sale its identifier. Written anew for each request, so that who looked before sees that it was requested. */
  async #identifying(order: Identified): Promise<RecordChange[]> {
    const named = identifiedIn(order)
    if (named === undefined) return []
    const { key, sale } = named
    const known = await this.ledger.record(identifierKind, key)
    const other = known && (JSON.parse(known.value) as IdentifiedSale)
    const isTaken = other !== undefined && (other.payment !== sale.payment || other.itemId !== sale.itemId)
    if (isTaken && (await this.#mayPay(other.payment)))
      throw new BucketsUnreachable('another sale has the payment-identifier')
    const value = JSON.stringify(sale)
    return [{ kind: identifierKind, key, value, expected: known?.version ?? 0 }]
  }

  /** Takes the identifier from a sale whose payment will not settle: nobody else has requested it. */
  async #freeing(order: Identified): Promise<RecordChange[]> {
    const named = identifiedIn(order)
    if (named === undefined) return []
    const { key, sale } = named
    const known = await this.ledger.record(identifierKind, key)
    if (known === undefined || (JSON.parse(known.value) as IdentifiedSale).payment !== sale.payment) return []
    const requests = await this.ledger.records(kind, `${sale.payment} `, '', 2)
    const isSettled = (await this.ledger.transfer(usdcTransferId(sale.payment))) !== undefined
    if (requests.length > 1 || isSettled) return []
    return [{ kind: identifierKind, key, value: undefined, expected: known.version }]
  }

  /** All requested settlements without a known end. */
  async *unended(): AsyncGenerator<RequestedSettlement> {
    for (let after = ''; ; ) {
      const page = await this.ledger.records(kind, '', after, pageMax)
      for (const found of page) yield read(found)
      const last = page.at(-1)
      if (last === undefined || page.length < pageMax) return
      after = last.key
    }
  }

  /** It has ended: nobody has to look after it any more. False: another process leads now, or it was requested anew. */
  async forget({ asker, record }: RequestedSettlement, fence: Fence): Promise<boolean> {
    const known = await this.ledger.record(kind, `${record.payment} ${asker}`)
    return known === undefined || this.#remove(known, [fence])
  }

  #keyOf(payment: string): string {
    return `${payment} ${this.self}`
  }

  async #remove(known: LedgerRecord, fences: readonly Fence[] = []): Promise<boolean> {
    const { key, version: expected } = known
    const freed = await this.#freeing(read(known).record)
    const records = [{ kind, key, value: undefined, expected }, ...freed, ...fences]
    return !isRejected(await this.ledger.commit({ transfers: [], records }))
  }
}

function read({ key, value }: LedgerRecord): RequestedSettlement {
  return { asker: key.slice(key.lastIndexOf(' ') + 1), record: readPaymentRecord(value) }
}

function identifierKey(payer: string, identifier: string): string {
  return `${payer}:${identifier}`
}

/** The identifier that the sale of a payment has. Undefined: it has none, or it is no sale. */
function identifiedIn({
  payment,
  payer,
  beneficiary,
}: Identified): { readonly key: string; readonly sale: IdentifiedSale } | undefined {
  if (!isSale(beneficiary)) return undefined
  const { identifier, itemId, sale } = readSaleBeneficiary(beneficiary)
  if (identifier === undefined || sale === undefined) return undefined
  return { key: identifierKey(payer, identifier), sale: { payment, itemId, request: sale.request } }
}

/** Whoever waits for claims knows only that they cannot be reached, not what keeps them. */
async function reachable<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (error) {
    if (isLedgerGone(error)) throw new BucketsUnreachable('the ledger cannot be reached', { cause: error })
    throw error
  }
}
