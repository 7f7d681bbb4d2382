/**
 * Credits that one wallet lets another spend. Here and below credits are counted in winc, as decimal texts: they go beyond what a
 * number can hold.
 */
export interface CreditApproval {
  readonly approvalDataItemId: string
  readonly approvedAddress: string
  readonly payingAddress: string
  readonly approvedWincAmount: string
  readonly usedWincAmount: string
  readonly creationDate: string
  readonly expirationDate?: string
}

export interface CreditShares {
  readonly givenApprovals: readonly CreditApproval[]
  readonly receivedApprovals: readonly CreditApproval[]
}

/** The first page of them, by amount. */
export interface CreditSharesPage extends CreditShares {
  readonly hasMore: boolean
  /** Where the next page begins; null: there is none. */
  readonly cursor: string | null
}

export interface CreditBalance extends CreditShares {
  /** What can be spent. */
  readonly winc: string
  /** With what was given to others and not used. */
  readonly controlledWinc: string
  /** With what others gave. */
  readonly effectiveBalance: string
}

export interface PriceAdjustment {
  readonly name: string
  readonly description: string
  readonly operator: 'add' | 'multiply'
  readonly operatorMagnitude: number
  readonly adjustmentAmount: string | number
}

export interface UploadCost {
  readonly winc: string
  readonly adjustments: readonly PriceAdjustment[]
  readonly fees?: readonly PriceAdjustment[]
}

export interface FiatQuote extends UploadCost {
  /** In the smallest unit of the currency. */
  readonly paymentAmount: number
  readonly actualPaymentAmount: number
  readonly quotedPaymentAmount: number
}

export interface TokenQuote extends UploadCost {
  readonly actualTokenAmount: string
  readonly equivalentWincTokenAmount: string
}

export interface FiatEstimate {
  readonly byteCount: number
  readonly amount: number
  readonly currency: string
  readonly winc: string
}

export interface FiatRates {
  readonly winc: string
  readonly fiat: Readonly<Record<string, number>>
  readonly adjustments: readonly PriceAdjustment[]
}

export interface SupportedCurrencies {
  readonly supportedCurrencies: readonly string[]
  readonly limits: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

export interface CheckoutSession extends UploadCost {
  readonly id: string
  readonly url: string | undefined
  readonly clientSecret: string | undefined
  readonly paymentAmount: number
  readonly actualPaymentAmount: number
  readonly quotedPaymentAmount: number
}

export type HistoryItem = {
  readonly type: 'crypto' | 'fiat'
  readonly wincCredited: string
  /** ISO 8601 UTC. */
  readonly date: string
} & Readonly<Record<string, unknown>>

export interface HistoryPage {
  readonly payments: readonly HistoryItem[]
  readonly hasMore: boolean
  readonly cursor: string | null
}

export interface TopUpResult {
  /** Id of the transaction on its own chain. */
  readonly id: string
  readonly status: 'pending' | 'confirmed' | 'failed'
  readonly winc: string
  readonly quantity: string
  /** The sender, where the chain names one; else the wallet that gets the credits. */
  readonly owner: string
  /** Who gets the credits. */
  readonly recipient: string
  readonly token: string
  /** Height on its own chain, once it is in a block. */
  readonly block?: number
  /** The address that it was sent to, where it was sent here. */
  readonly target?: string
}

/** A currency and an amount of it in its smallest unit (cents, yen). */
export interface CurrencyAmount {
  readonly currency: string
  readonly amount: number
}
