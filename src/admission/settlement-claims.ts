/** What is known of a payment among the gateways that fill the same buckets. */
export type ClaimState =
  /** Its tokens are in a bucket. */
  | 'credited'
  /** Another one asked for its settlement a moment ago, and may still be at it. */
  | 'asked'
  /** Another one asked for it, and never said how it ended: it may have died. */
  | 'left'
  /** No other one asked for it. */
  | 'nobody'

/**
 * Gateways that fill the same buckets tell each other which settlements they ask for. Without that the chain's word that a
 * payment moved says nothing about whose buckets it filled: a gateway with the same wallet and buckets of its own may have asked.
 * Each call rejects where the others cannot be told or asked now.
 */
export interface SettlementClaims {
  /** This gateway is about to ask for settlement. */
  ask(payment: string): Promise<void>
  /** What this gateway asked for moved nothing, for sure. */
  clear(payment: string): Promise<void>
  /** What the others did. */
  look(payment: string): Promise<ClaimState>
}
