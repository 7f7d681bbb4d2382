import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { BucketsUnreachable } from './buckets.js'
import type { PaymentOrder } from './cashier-messages.js'
import type { MovedOnChain, Witness, WitnessedPayment } from './chain-witness.js'
import type { ClaimState, SettlementClaims } from './settlement-claims.js'

const isOnChain = (seen: MovedOnChain): seen is `0x${string}` | 'early' =>
  seen === 'early' || seen.startsWith('0x')

export interface SharedSettlementParts {
  /** Absent: nobody else credits the same. */
  readonly claims?: SettlementClaims
  /** Consulted where a facilitator's refusal may be incomplete. */
  readonly witness?: Witness
  readonly clock: Clock
  readonly log: Log
}

/** Between two looks at what another service does. */
const lookEveryMs = 1000

/**
 * Whether a payment whose nonce is used was taken by another service that credits the same: a gateway with these buckets, a
 * payment service with this ledger. Only then its transfer on chain may be credited here. Any other transfer to the wallet was
 * requested elsewhere, and was credited there.
 */
export class ClaimedSettlement {
  constructor(private readonly parts: SharedSettlementParts) {}

  /** Announces a request of this service. False: the others were not reached, so nothing may be requested. */
  async claim(order: PaymentOrder): Promise<boolean> {
    return (await this.#attempt(() => this.parts.claims?.claim(order))) !== 'failed'
  }

  /** The settlement that this service requested moved nothing. */
  async clear({ payment }: WitnessedPayment): Promise<void> {
    await this.#attempt(() => this.parts.claims?.clear(payment))
  }

  /** The transaction by which another such service took it; `pending`: one requested it; undefined: none did. */
  async taken(order: WitnessedPayment): Promise<`0x${string}` | 'pending' | undefined> {
    const standing = await this.#standing(order)
    if (standing === 'pending') return 'pending'
    const seen = await this.parts.witness?.moved(order)
    if (seen === undefined || !isOnChain(seen)) return undefined
    // It counts when its block is final: until then it is as if the other service was not done.
    if (standing !== 'nobody') return seen === 'early' ? 'pending' : seen
    if (seen === 'early') return undefined
    this.parts.log.error(
      { payment: order.payment, transaction: seen },
      'a payment moved to this wallet that nobody who fills these buckets requested: it is not credited. ' +
        'Gateways with buckets of their own need wallets of their own',
    )
    return undefined
  }

  /** The same, when the other service is done; `pending` only after `untilMs` (monotonic), or when `isOver`. */
  async takenInTheEnd(
    order: WitnessedPayment,
    untilMs: number,
    isOver: () => boolean,
  ): Promise<`0x${string}` | 'pending' | undefined> {
    const { clock } = this.parts
    for (;;) {
      const taken = await this.taken(order)
      if (taken !== 'pending' || clock.monotonic() > untilMs || isOver()) return taken
      await new Promise<void>((resolve) => {
        clock.after(lookEveryMs, resolve)
      })
    }
  }

  async #standing({ payment }: WitnessedPayment): Promise<ClaimState> {
    const { claims } = this.parts
    if (claims === undefined) return 'nobody'
    const standing = await this.#attempt(() => claims.look(payment))
    // Where the claims cannot be reached, another service may be settling it.
    return standing === undefined || standing === 'failed' ? 'pending' : standing
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
