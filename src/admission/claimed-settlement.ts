import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { BucketsUnreachable } from './buckets.js'
import type { PaymentOrder } from './cashier-messages.js'
import type { Witness, WitnessedPayment } from './chain-witness.js'
import type { PaymentRecord } from './payment-records.js'
import type { Bound, PaymentClaim, SettlementClaims } from './settlement-claims.js'

export interface ClaimedSettlementParts {
  /** Absent: nobody else credits the same. */
  readonly claims?: SettlementClaims
  /** Consulted where a facilitator's refusal may be incomplete. */
  readonly witness?: Witness
  readonly clock: Clock
  readonly log: Log
}

/** A payment that another service took. Its transaction is '' where nobody knows it. */
export interface TakenElsewhere extends Partial<Bound> {
  readonly transaction: string
  /** What has moved; absent: nobody here knows it, and what the order states may be another amount. */
  readonly units?: string
}

/** The amount of a payment that was taken over, for its record: what its bearer states may be another one. */
export function settledAmount({
  units,
}: TakenElsewhere): Pick<PaymentRecord, 'isAmountUnchecked'> | Pick<PaymentRecord, 'units'> {
  return units === undefined ? { isAmountUnchecked: true } : { units }
}

/** `pending`: another service may settle it, or has: who knows that does not answer now. Undefined: none took it. */
export type Taken = TakenElsewhere | 'pending' | undefined

/** Between two looks at what another service does. */
const lookEveryMs = 1000

/**
 * Whether a payment whose nonce is used was taken by another service that credits the same: a gateway with these buckets, a
 * payment service with this ledger. Only then its transfer on chain may be credited here. Any other transfer to the wallet was
 * requested elsewhere, and was credited there.
 */
export class ClaimedSettlement {
  constructor(private readonly parts: ClaimedSettlementParts) {}

  /** As `SettlementClaims.bind`; undefined: payments are not bound there; `failed`: the others were not reached. */
  async bind(order: PaymentOrder): Promise<Bound | 'failed' | undefined> {
    return this.#attempt(() => this.parts.claims?.bind?.(order))
  }

  /** As `SettlementClaims.claim`. False: the others were not reached, so nothing may be requested. */
  async claim(order: PaymentOrder): Promise<boolean> {
    return (await this.#attempt(() => this.parts.claims?.claim?.(order))) !== 'failed'
  }

  /** The settlement that this service requested moved nothing. */
  async clear({ payment }: Pick<WitnessedPayment, 'payment'>): Promise<void> {
    await this.#attempt(() => this.parts.claims?.clear(payment))
  }

  /** Who has it as credited. Rejects with `BucketsUnreachable`. */
  async beneficiaryOf({
    payment,
    beneficiary,
  }: Pick<PaymentOrder, 'payment' | 'beneficiary'>): Promise<string> {
    return (await this.parts.claims?.look(payment))?.beneficiary ?? beneficiary
  }

  /** What another such service did with it. `isUsed`: the facilitator states that its nonce is used. */
  async taken(order: WitnessedPayment, isUsed = true): Promise<Taken> {
    const { state, transaction, units, ...bound } = await this.#standing(order)
    const stated = units === undefined ? bound : { ...bound, units }
    if (state === 'pending') return 'pending'
    // A mark of an older release does not state for whom it is.
    const isMarkOfOld = state === 'credited' && bound.beneficiary === undefined
    if (isMarkOfOld && this.parts.claims?.bind !== undefined) return 'pending'
    if (transaction !== undefined) return { ...stated, transaction }
    if (state === 'nobody') {
      if (isUsed) await this.#reportStray(order)
      return undefined
    }
    const seen = await this.parts.witness?.moved(order)
    // It counts when its block is final: until then it is as if the other service was not done.
    if (seen?.startsWith('0x') === true) return { ...bound, transaction: seen, units: order.units }
    if (state === 'credited') return { ...stated, transaction: '' }
    // Only what cannot move any more was not taken. A chain that does not answer, or lags, decides nothing.
    return seen === 'never' ? undefined : 'pending'
  }

  /** A transfer to the wallet that no service of these buckets requested. */
  async #reportStray(order: WitnessedPayment): Promise<void> {
    const seen = await this.parts.witness?.moved(order)
    if (seen?.startsWith('0x') !== true) return
    this.parts.log.error(
      { payment: order.payment, transaction: seen },
      'a payment moved to this wallet that nobody who fills these buckets requested: it is not credited. ' +
        'Gateways with buckets of their own need wallets of their own',
    )
  }

  /** The same, when the other service is done; `pending` only after `untilMs` (monotonic), or when `isOver`. */
  async takenInTheEnd(order: WitnessedPayment, untilMs: number, isOver: () => boolean): Promise<Taken> {
    const { clock } = this.parts
    for (;;) {
      const taken = await this.taken(order)
      if (taken !== 'pending' || clock.monotonic() > untilMs || isOver()) return taken
      await new Promise<void>((resolve) => {
        clock.after(lookEveryMs, resolve)
      })
    }
  }

  async #standing({ payment }: WitnessedPayment): Promise<PaymentClaim> {
    const { claims } = this.parts
    if (claims === undefined) return { state: 'nobody' }
    const standing = await this.#attempt(() => claims.look(payment))
    // Where the claims cannot be reached, another service may be settling it.
    return standing === undefined || standing === 'failed' ? { state: 'pending' } : standing
  }

  async #attempt<T>(act: () => Promise<T> | undefined): Promise<T | 'failed' | undefined> {
    try {
      return await act()
    } catch (error) {
      if (!(error instanceof BucketsUnreachable)) throw error
      this.parts.log.warn(
        { err: error },
        'a payment cannot be announced to gateways that fill the same buckets',
      )
      return 'failed'
    }
  }
}
