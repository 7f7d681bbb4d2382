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

/** What a payment is bound to, for good, by the service that requested it first. */
export interface Bound {
  /** As in `PaymentOrder`. */
  readonly beneficiary: string
  /** The name under which it is owned (`PaymentOwners`). */
  readonly owner: string
}

/** The claim on a payment. Its beneficiary is absent where the services bind payments elsewhere (`PaymentOwners`). */
export interface PaymentClaim extends Partial<Bound> {
  readonly state: ClaimState
  /** Hash, where it is credited; absent: not recorded. */
  readonly transaction?: string
  /** What was settled, as in `PaymentOrder`; absent: not recorded. A payer may sign one nonce for several amounts. */
  readonly units?: string
}

/**
 * Services that credit the same share which settlements they request: gateways that fill the same buckets, and payment services
 * with one ledger. That a payment moved on chain does not show where it was credited: a service with the same wallet, but other
 * buckets, may have requested it. Each call rejects where the claims cannot be reached now.
 */
export interface SettlementClaims {
  /** The name of all services that credit the same: they own a payment together (`PaymentOwners`). */
  commonName(): Promise<string>
  /**
   * What the payment is bound to: by this call, where nobody has bound it. Where that is the beneficiary of the order, this
   * service is recorded in the same step as one that is about to request the settlement. Only for payments that are not on the
   * chain: from there anybody can bring them. Absent: each payment is bound elsewhere.
   */
  bind?(order: Pick<PaymentOrder, 'payment' | 'beneficiary'>): Promise<Bound>
  /** Records that this service is about to request the settlement of a payment that it owns. Absent: `bind` does that. */
  claim?(order: PaymentOrder): Promise<void>
  /** Removes the claim of this service, whose settlement certainly moved nothing. The last one unbinds. */
  clear(payment: string): Promise<void>
  /** What the other services have claimed. */
  look(payment: string): Promise<PaymentClaim>
}

export interface ClaimOptions {
  /** What this gateway is called among those with its Redis; the same after a restart. */
  readonly self: string
  /** Longer than one attempt to settle takes: a claim that is older was left by a gateway that died. */
  readonly leftMs: number
  /** The common name that this gateway saw last, on its disk: a Redis that lost its data gets it again. Absent: none is kept. */
  readonly kept?: KeptName
}

/** One name that lasts. */
export interface KeptName {
  find(): string | undefined
  /** Does nothing where the disk is full. */
  keep(name: string): void
}
