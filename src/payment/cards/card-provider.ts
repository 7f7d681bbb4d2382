import type { Refusal } from '../../format/refusal.js'
import type { RecordChange } from '../../ledger/ledger-port.js'
import type { Currency } from '../prices/rates.js'

/** A page, or a form in the client's own page, where a card is charged. */
export interface PaymentSession {
  readonly id: string
  /** Where the browser goes; null where the client has a form of its own. */
  readonly url: string | null
  /** What that form needs; null where there is a page. */
  readonly client_secret: string | null
  readonly payment_method_types?: readonly string[]
}

export interface SessionWish {
  readonly quoteId: string
  readonly method: 'payment-intent' | 'checkout-session'
  readonly uiMode: 'hosted' | 'embedded'
  readonly currency: Currency
  /** In the smallest unit. */
  readonly amount: number
  readonly expiresMs: number
  readonly successUrl?: string
  readonly cancelUrl?: string
  readonly returnUrl?: string
}

/** An event of a provider about a payment. */
export type CardEvent =
  | {
      readonly kind: 'paid'
      readonly quoteId: string
      readonly payment: string
      readonly amount: number
      readonly currency: string
      /** When the card was charged; absent: now. */
      readonly paidMs?: number
    }
  /** The payer got the payment back. */
  | {
      readonly kind: 'disputed'
      readonly quoteId: string
      readonly payment: string
      readonly reason: string
      /** Names the dispute, which withdraws a payment once, and gives it back once at most. Absent: there is only one. */
      readonly dispute?: string
      /** The operator has sent it back in the provider's own pages. */
      readonly isRefund?: true
    }
  /** What a dispute took came back: it was decided for the operator. */
  | {
      readonly kind: 'reinstated'
      readonly quoteId: string
      readonly payment: string
      readonly dispute?: string
    }
  | { readonly kind: 'other' }

/** A payment as its provider has it in his books. */
export interface CardTaken {
  readonly payment: string
  /** '' where it belongs to something else that the operator sells. */
  readonly quoteId: string
  readonly amount: number
  readonly currency: string
  readonly paidMs: number
  readonly isRefunded: boolean
  /** A dispute has withdrawn it, and is not won. */
  readonly isDisputed: boolean
  /** Names that dispute. */
  readonly dispute?: string
}

/** A part of a list; `next` is given to have the part behind it, absent: this was the last. */
export interface CardPage<Entry> {
  readonly entries: readonly Entry[]
  readonly next?: string
}

/** A provider that charges cards. */
export interface CardProvider {
  readonly name: 'stripe' | 'local'
  open(wish: SessionWish): Promise<PaymentSession | Refusal>
  /** Reads what was posted to the webhook; undefined where it is not signed by the provider. */
  read(body: Uint8Array, signature: string): Promise<CardEvent | undefined>
  /** Events since a time, in any order: those that were missed while nobody listened. */
  since(ms: number, after: string | undefined): Promise<CardPage<CardEvent> | Refusal>
  /** Payments that were taken from a time up to another one, in any order. */
  taken(fromMs: number, toMs: number, after: string | undefined): Promise<CardPage<CardTaken> | Refusal>
  /** One payment; undefined where the provider has none of that name. */
  find(payment: string): Promise<CardTaken | undefined | Refusal>
  /** Sends a payment back, once. */
  refund(payment: string): Promise<true | Refusal>
  /** What is written when a quote that was never paid is removed. Absent: the provider keeps nothing here. */
  gone?(quoteId: string): Promise<readonly RecordChange[]>
}
