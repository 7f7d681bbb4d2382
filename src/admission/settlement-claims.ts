import type { PaymentOrder } from './cashier-messages.js'

/** What is known of a payment among the services that credit the same. */
export type ClaimState =
  /** It is credited. */
  | 'credited'
  /** Another service requested its settlement a moment ago, and may still be waiting for it. */
  | 'pending'
  /** Another service requested it and did not record how it ended: it may have died. */
  | 'left'
  /** No other service requested it. */
  | 'nobody'

/**
 * Services that credit the same share which settlements they request: gateways that fill the same buckets, and payment services
 * with one ledger. That a payment moved on chain does not show where it was credited: a service with the same wallet, but other
 * buckets, may have requested it. Each call rejects where the claims cannot be reached now.
 */
export interface SettlementClaims {
  /** The name of all services that credit the same: they own a payment together (`PaymentOwners`). */
  commonName(): Promise<string>
  /** Records that this service is about to request the settlement. */
  claim(order: PaymentOrder): Promise<void>
  /** Removes the claim of this service: the settlement that it requested certainly moved nothing. */
  clear(payment: string): Promise<void>
  /** What the other services have claimed. */
  look(payment: string): Promise<ClaimState>
}
