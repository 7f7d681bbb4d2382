import { BucketsUnreachable } from '../../admission/buckets.js'
import type { ClaimState, SettlementClaims } from '../../admission/settlement-claims.js'
import type { PaymentRecord } from '../../admission/settlement-ledger.js'
import type { PaymentOrder } from '../../admission/settlement-messages.js'
import type { Fence } from '../../ledger/lead.js'
import { isLedgerGone, isRejected, type LedgerRecord, type MoneyLedger } from '../../ledger/ledger-port.js'
import { usdcTransferId } from './usdc-transfers.js'

const kind = 'x402-asked'
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

/**
 * Settlements that the payment services of one ledger have requested. Each is in the ledger completely before it is requested. If
 * its service and its disk are lost in between, another service must find out whether the payment was settled.
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

  async house(): Promise<string> {
    return kind
  }

  async ask(order: PaymentOrder): Promise<void> {
    const { signature, asker, ...facts } = order
    const record: PaymentRecord = { ...facts, state: 'asked', askedMs: this.now() }
    const key = this.#keyOf(order.payment)
    await reachable(async () => {
      const known = await this.ledger.record(kind, key)
      const value = JSON.stringify(record)
      // Refused only where this service requests twice at the same time: both records are the same.
      await this.ledger.commit({
        transfers: [],
        records: [{ kind, key, value, expected: known?.version ?? 0 }],
      })
    })
  }

  async clear(payment: string): Promise<void> {
    await reachable(async () => {
      const known = await this.ledger.record(kind, this.#keyOf(payment))
      if (known !== undefined) await this.#remove(known)
    })
  }

  look(payment: string): Promise<ClaimState> {
    return reachable(async () => {
      if ((await this.ledger.transfer(usdcTransferId(payment))) !== undefined) return 'credited'
      const byOthers = (await this.ledger.records(kind, `${payment} `, '', pageMax))
        .map(read)
        .filter(({ asker }) => asker !== this.self)
      if (byOthers.length === 0) return 'nobody'
      const youngestMs = Math.max(...byOthers.map(({ record }) => record.askedMs))
      return this.now() - youngestMs < this.options.leftMs ? 'asked' : 'left'
    })
  }

  /** Whether any service of the ledger has requested it, and its end is not known. */
  async isRequested(payment: string): Promise<boolean> {
    return (await this.ledger.records(kind, `${payment} `, '', 1)).length > 0
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

  async #remove({ key, version: expected }: LedgerRecord, fences: readonly Fence[] = []): Promise<boolean> {
    const records = [{ kind, key, value: undefined, expected }, ...fences]
    return !isRejected(await this.ledger.commit({ transfers: [], records }))
  }
}

function read({ key, value }: LedgerRecord): RequestedSettlement {
  return { asker: key.slice(key.lastIndexOf(' ') + 1), record: JSON.parse(value) as PaymentRecord }
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
