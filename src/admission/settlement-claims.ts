import type { PaymentOrder } from './settlement-messages.js'

/** What is known of a payment among the gateways that fill the same buckets. */
export type ClaimState =
  /** Its tokens are in a bucket. */
  | 'credited'
  /** Another gateway requested its settlement a moment ago, and may still be waiting for it. */
  | 'asked'
  /** Another gateway requested it and did not record how it ended: it may have died. */
  | 'left'
  /** No other gateway requested it. */
  | 'nobody'

/**
 * Gateways that fill the same buckets share which settlements they request. That a payment moved on chain does not
 * show whose buckets it filled: a gateway with the same wallet but other buckets may have requested it. Each call
 * rejects where the claims cannot be reached now.
 */
export interface SettlementClaims {
  /** The name that all of them have in common. */
  house(): Promise<string>
  /** This gateway is about to request the settlement. */
  ask(order: PaymentOrder): Promise<void>
  /** The settlement that this gateway requested certainly moved nothing. */
  clear(payment: string): Promise<void>
  /** The requests of the other gateways. */
  look(payment: string): Promise<ClaimState>
}
