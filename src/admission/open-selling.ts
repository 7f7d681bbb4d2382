import type { Clock } from '../actor/clock.js'
import type { Address } from '../actor/mailbox-address.js'
import type { Meters } from '../actor/meter.js'
import type { Request } from '../http/exchange.js'
import { type CashierReply, type CashierRequest, Kinds } from './cashier-messages.js'
import { x402Routes } from './paid-routes.js'
import { type OfferOptions, Offers } from './payment-offer.js'
import { PaymentRecords, type PaymentRow } from './payment-records.js'
import { Paywall, type PaywallOptions } from './paywall.js'
import { inUsdc } from './token-price.js'
import { X402 } from './x402.js'

/** What payments are to an edge thread. Plain: it is cloned into threads. */
export interface EdgePayments {
  readonly offer: OfferOptions
  readonly paywall: Omit<PaywallOptions, 'pathPrefix'>
  readonly kinds: SharedArrayBuffer
  /** Folder of the records; read only here. */
  readonly recordsPath: string
}

/** The payments of an edge thread. */
export interface Selling {
  readonly payments: X402
  readonly routes: ReturnType<typeof x402Routes>
  /** The section of the info answer. */
  readonly about: object
  /** In USDC, as decimal numbers. */
  readonly price: { readonly perByte: string; readonly minimum: string; readonly perGiB: string }
  /** The last payments, youngest first: for the operator. */
  recent(max: number): PaymentRow[]
  close(): Promise<void>
}

/** The payments of one edge thread. The cashier's thread must be up: it makes the folder of the records. */
export function openPayments(
  { offer, paywall: looks, kinds, recordsPath }: EdgePayments,
  given: {
    readonly cashier: Address<CashierRequest, CashierReply>
    readonly pathPrefix: string
    /** Address of the client whose bucket is filled. */
    clientOf(request: Request): string
    readonly clock: Clock
    readonly meters: Meters
  },
): Selling {
  const { pathPrefix, clientOf, cashier, clock, meters } = given
  const offers = new Offers(offer, new Kinds(kinds))
  const paywall = new Paywall(offers, { ...looks, pathPrefix })
  const payments = new X402({ offers, cashier, paywall, clock, meters })
  const records = new PaymentRecords(recordsPath)
  return {
    payments,
    routes: x402Routes({ pathPrefix, payments, paywall, clientOf }),
    about: offers.about(),
    price: {
      perByte: offer.tariff.perByte,
      minimum: offer.tariff.minimum,
      perGiB: inUsdc(offers.price.units(2 ** 30)),
    },
    recent: (max) => records.recent(max),
    close: () => records.close(),
  }
}
