import type { Address } from '../actor/address.js'
import type { Clock } from '../actor/clock.js'
import type { Request } from '../http/exchange.js'
import { type OfferOptions, Offers } from './offer.js'
import { Paywall, type PaywallOptions } from './paywall.js'
import type { CashierOptions } from './settlement.js'
import { type CashierReply, type CashierRequest, Kinds } from './settlement-protocol.js'
import type { Limits } from './wiring.js'
import { X402 } from './x402.js'
import { x402Routes } from './x402-routes.js'

/** What `workers/payments.ts` is started with. Answers `CashierRequest` with `CashierReply` on every port that comes. */
export interface PaymentsThread {
  /** Where paid tokens go. */
  readonly limits: Limits
  readonly ledgerPath: string
  readonly network: OfferOptions['network']
  readonly facilitatorUrl: string
  /** Receives the payments; lower case. */
  readonly wallet: string
  /** A node of the chain, where there is one to ask. */
  readonly rpcUrl?: string
  readonly verifyMs: number
  readonly settleMs: number
  readonly connectionsMax: number
  readonly cashier: CashierOptions
  /** Signs requests to the facilitator, where it is the provider's own. */
  readonly cdp?: { readonly keyId: string; readonly secret: string }
  /** Memory of the `Kinds` table. */
  readonly kinds: SharedArrayBuffer
  readonly mailboxMax: number
  readonly logLevel: string
}

/** What payments are to an edge thread. Plain: it is cloned into threads. */
export interface EdgePayments {
  readonly offer: OfferOptions
  readonly paywall: Omit<PaywallOptions, 'pathPrefix'>
  readonly kinds: SharedArrayBuffer
}

/** The payments of one edge thread, their routes, and their section of the info answer. */
export function openPayments(
  { offer, paywall: looks, kinds }: EdgePayments,
  given: {
    readonly cashier: Address<CashierRequest, CashierReply>
    readonly pathPrefix: string
    /** Address of the client whose bucket is filled. */
    clientOf(request: Request): string
    readonly clock: Clock
  },
): { payments: X402; routes: ReturnType<typeof x402Routes>; about: object } {
  const { pathPrefix, clientOf, cashier, clock } = given
  const offers = new Offers(offer, new Kinds(kinds))
  const paywall = new Paywall(offers, { ...looks, pathPrefix })
  const payments = new X402({ offers, cashier, paywall, clock })
  return { payments, routes: x402Routes({ pathPrefix, payments, paywall, clientOf }), about: offers.about() }
}
