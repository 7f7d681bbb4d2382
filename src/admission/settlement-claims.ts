import type { PaymentOrder } from './settlement-messages.js'

/** What is known of a payment among the gateways that fill the same buckets. */
export type ClaimState =
  /** Its tokens are in a bucket. */
  | 'credited'
  /** Another gateway asked for its settlement a moment ago, and may still be waiting for it. */
  | 'asked'
  /** Another gateway asked for it and did not record how it ended: it may have died. */
  | 'left'
  /** No other one asked for it. */
  | 'nobody'

/**
 * Gateways that fill the same buckets tell each other which settlements they ask for. That a payment moved on chain
 * does not show whose buckets it filled: a gateway with the same wallet but other buckets may have asked. Each call
 * rejects where the claims cannot be reached now.
 */
export interface SettlementClaims {
  /** The name that all of them have in common. */
  house(): Promise<string>
  /** This gateway is about to ask for settlement. */
  ask(order: PaymentOrder): Promise<void>
  /** What this gateway asked for moved nothing, for sure. */
  clear(payment: string): Promise<void>
  /** What the others did. */
  look(payment: string): Promise<ClaimState>
}
