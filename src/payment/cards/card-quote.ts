import type { LedgerRecord, RecordChange } from '../../ledger/ledger-port.js'
import type { Currency } from '../prices/rates.js'
import type { Adjustment } from '../prices/tariff.js'
import { quoteKind as kind, noUnpaidMark } from './unpaid-quotes.js'

/** A promised price and its state. */
export interface CardQuote {
  readonly id: string
  /** `refunding`: its payment is not credited any more, and the provider has not confirmed the refund yet. */
  readonly state: 'open' | 'paid' | 'refunding' | 'refunded' | 'disputed'
  /** A wallet, or an e-mail address. */
  readonly destination: string
  readonly destinationType: string
  readonly winc: string
  /** A part of it that is a gift of ours. */
  readonly promotedWinc: string
  readonly currency: Currency
  /** What is charged, in the smallest unit. */
  readonly amount: number
  readonly quotedAmount: number
  readonly expiresMs: number
  readonly codes: readonly string[]
  readonly adjustments: readonly Adjustment[]
  readonly fees: readonly Adjustment[]
  readonly giftMessage?: string
  readonly payment?: string
  readonly why?: string
  /** A name that is bought as soon as it is paid: by the nonce of the purchase. */
  readonly purchase?: { readonly nonce: string; readonly name: string }
}

/** A quote as the ledger keeps it (JSON). */
export function readQuote(stored: LedgerRecord): CardQuote {
  return JSON.parse(stored.value) as CardQuote
}

/** What became of a quote that was open. */
export function quoteEnded(stored: LedgerRecord, next: CardQuote): readonly RecordChange[] {
  return [quoteChanged(stored, next), noUnpaidMark(next)]
}

/** A quote in place of the one that was read. */
export function quoteChanged({ key, version }: LedgerRecord, next: CardQuote): RecordChange {
  return { kind, key, value: JSON.stringify(next), expected: version }
}
