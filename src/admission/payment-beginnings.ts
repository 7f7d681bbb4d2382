import { isRefusal } from '../format/refusal.js'
import { tryWrite } from '../store/disk-error.js'
import type { CashierReply, PaymentOrder } from './cashier-messages.js'
import type { CashierParts } from './cashier-parts.js'
import {
  boundElsewhere,
  isLate,
  late,
  spent,
  uncheckedDigest,
  unsignedReasons,
  usedReasons,
} from './cashier-replies.js'
import { type ClaimedSettlement, settledAmount, type TakenElsewhere } from './claimed-settlement.js'
import { isOfContract } from './lanes.js'
import type { Ownership } from './payment-owners.js'
import type { PaymentRecord, RequestedOrder } from './payment-records.js'

/** The owner of a payment is recorded for so long after its validity: far longer than its settlement is requested. */
const ownedMs = 24 * 3600_000

/** A recorded payment. `transaction`: of another service that settled it; absent: its settlement is to be requested. */
export interface Begun {
  readonly record: PaymentRecord
  readonly transaction?: string
}

/** An order without what only its payer can state: whoever brings it may have made that up. */
function unchecked({ signed: _, ...order }: PaymentOrder): RequestedOrder {
  return { ...order, digest: uncheckedDigest }
}

const down: CashierReply = { state: 'down' }

/**
 * The way of a payment until its settlement is requested: verified, bound to its beneficiary, owned, announced, recorded. Each
 * step comes before anything moves, because what has moved stands on the chain, and anybody can bring it from there.
 */
export class PaymentBeginnings {
  constructor(
    private readonly parts: Pick<
      CashierParts,
      'records' | 'facilitator' | 'owners' | 'claims' | 'clock' | 'log'
    >,
    private readonly claimed: ClaimedSettlement,
    private readonly closing: AbortSignal,
  ) {}

  /** A reply: nothing is to be settled for this order. */
  async begin(order: PaymentOrder): Promise<Begun | CashierReply> {
    const { facilitator, clock } = this.parts
    // What is late may have been settled in its time, by another service.
    const answer = isLate(order, clock.now())
      ? ({ verdict: 'invalid', reason: late } as const)
      : await facilitator.verify(order.message, order.payer)
    if (answer.verdict === 'nothing') return down
    if (answer.verdict === 'valid') return this.#ask(order)
    const isUsed = usedReasons.has(answer.reason)
    // Once it is settled, facilitators may refuse it by what is left in the wallet, too. The signature of a contract's wallet
    // is checked by nobody else: anybody can write one under the name of another payment.
    const maySettle = isUsed || !(isOfContract(order) || unsignedReasons.has(answer.reason))
    const taken = maySettle ? await this.claimed.taken(order, isUsed) : undefined
    if (taken === undefined) return { state: 'refused', stage: 'verify', reason: answer.reason }
    if (taken !== 'pending') return this.#takeOver(order, taken)
    // Who brings it may be anybody: nothing is owned for him. It is bound already, and what is for something else waits as well.
    if (this.parts.claims?.bind !== undefined) return { state: 'pending' }
    return (await this.own(order)) === 'other' ? spent : { state: 'pending' }
  }

  /** Whether the payment is ours to take for this, and nobody else's with the same wallet. `owner`: as in `PaymentOwners`. */
  async own(
    { payment, validBefore, beneficiary }: Pick<PaymentOrder, 'payment' | 'validBefore' | 'beneficiary'>,
    owner?: string,
  ): Promise<Ownership> {
    const untilMs = validBefore * 1000 + ownedMs
    return (await this.parts.owners?.own(payment, untilMs, beneficiary, owner)) ?? 'ours'
  }

  /** Binds a payment that would settle, and announces its settlement. */
  async #ask(order: PaymentOrder): Promise<Begun | CashierReply> {
    const bound = await this.claimed.bind(order)
    if (bound === 'failed') {
      // It may be announced all the same.
      await this.claimed.clear(order)
      return down
    }
    if (bound !== undefined && bound.beneficiary !== order.beneficiary) return boundElsewhere
    const ownership = await this.own(order, bound?.owner)
    const isAnnounced = ownership === 'ours' && (await this.claimed.claim(order))
    const record = isAnnounced ? await this.#record(order, bound?.owner) : undefined
    if (record !== undefined) return { record }
    // No settlement was requested, and no other service shall request one.
    await this.claimed.clear(order)
    return ownership === 'other' ? spent : down
  }

  /** Takes what another service has settled: for the beneficiary for whom it was requested there, whoever brings it here. */
  async #takeOver(order: PaymentOrder, taken: TakenElsewhere): Promise<Begun | CashierReply> {
    const { beneficiary = order.beneficiary, owner, transaction } = taken
    const brought = isOfContract(order) ? unchecked(order) : order
    const bound = { ...brought, ...settledAmount(taken), beneficiary }
    const ownership = await this.own(bound, owner)
    if (ownership === 'other') return spent
    const record = ownership === 'ours' ? await this.#record(bound, owner) : undefined
    return record === undefined ? { state: 'pending' } : { record, transaction }
  }

  /** Writes down that the settlement is requested. Undefined: there is no place for it. */
  async #record(order: RequestedOrder, owner: string | undefined): Promise<PaymentRecord | undefined> {
    const { records, clock, log } = this.parts
    if (this.closing.aborted) return undefined
    const owned = owner === undefined ? order : { ...order, owner }
    const record = tryWrite(() => records.recordRequest(owned, clock.now()))
    if (record !== undefined && isRefusal(record)) {
      log.error({ reason: record.message }, 'a payment is not taken: it could not be written down')
      return undefined
    }
    if (record === undefined) log.error('the table of payments is full: new payments are refused')
    else await records.flushed()
    return record
  }
}
