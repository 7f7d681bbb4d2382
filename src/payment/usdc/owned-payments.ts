import type { PaymentOwner, RecordOwner } from '../../admission/payment-owners.js'
import { type Refusal, refuse } from '../../format/refusal.js'
import { commitTriesMax, isRejected, type LedgerRecord, type MoneyLedger } from '../../ledger/ledger-port.js'

const kind = 'x402-owner'
const paymentShape = /^\d{1,20}:0x[0-9a-f]{40}:0x[0-9a-f]{64}$/
const ownerShape = /^[\w:-]{1,100}$/
const purposeShape = /^[\w:-]{1,100}$/
/** Records looked at in one go. */
const pageMax = 1000

interface Owned extends PaymentOwner {
  readonly untilMs: number
}

/**
 * The one place that decides who takes a payment, and for what: a record in the ledger, which is made once, whatever keeps the
 * ledger. All sellers with the wallet of this payment service call it: its own processor (`X402Processor`), and gateways. It is
 * made before the payment is sent to anybody. From then on others can read the payment, and cannot use it for anything else.
 */
export class OwnedPayments {
  /** Where the next look for old records begins. */
  #after = ''

  constructor(
    private readonly ledger: MoneyLedger,
    /** As `ConfirmedTime.now`. */
    private readonly confirmed: () => number,
  ) {}

  /** Records the owner of a payment, where it has none. Resolves with the recorded one. Rejects where the ledger is gone. */
  async own({
    payment,
    owner,
    untilMs,
    purpose,
  }: Parameters<RecordOwner>[0]): Promise<PaymentOwner | Refusal> {
    const isNamed = ownerShape.test(owner) && (purpose === undefined || purposeShape.test(purpose))
    if (!paymentShape.test(payment) || !isNamed || !Number.isSafeInteger(untilMs))
      return refuse('malformed', 'client', 'the request does not name a payment and its owner')
    const claimed = purpose === undefined ? { owner } : { owner, purpose }
    const value = JSON.stringify({ ...claimed, untilMs } satisfies Owned)
    for (let tries = 0; tries < commitTriesMax; tries += 1) {
      const records = [{ kind, key: payment, value, expected: 0 }]
      if (!isRejected(await this.ledger.commit({ transfers: [], records }))) return claimed
      const known = await this.ledger.record(kind, payment)
      // Undefined: it was forgotten meanwhile.
      if (known === undefined) continue
      const { untilMs: _, ...recorded } = read(known)
      return recorded
    }
    throw new Error(`the owner of payment ${payment} changes all the time`)
  }

  /** Forgets some of those that cannot be settled any more. Resolves with how many. */
  async forget(): Promise<number> {
    const page = await this.ledger.records(kind, '', this.#after, pageMax)
    this.#after = page.length < pageMax ? '' : (page.at(-1)?.key ?? '')
    const old = page.filter((record) => read(record).untilMs < this.confirmed())
    if (old.length === 0) return 0
    const records = old.map(({ key, version: expected }) => ({ kind, key, value: undefined, expected }))
    // Another service with the same ledger may have forgotten some of them: the next round sees what is left.
    return isRejected(await this.ledger.commit({ transfers: [], records })) ? 0 : old.length
  }
}

function read({ value }: LedgerRecord): Owned {
  return JSON.parse(value) as Owned
}
