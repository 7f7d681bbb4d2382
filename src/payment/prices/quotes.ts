import { isRefusal, type Refusal } from '../../format/refusal.js'
import type { Denied } from '../credits-port.js'
import type { Oracle } from './oracle.js'
import type { Promotions } from './promotions.js'
import {
  afterFee,
  type Currency,
  feeOfFiat,
  type Rates,
  type TokenName,
  usdOfToken,
  wincOfFiat,
  wincOfToken,
} from './rates.js'
import { type Adjustment, amountFault, feeOf } from './tariff.js'

/** What an amount of money buys. */
export interface FiatQuote {
  readonly winc: string
  readonly adjustments: readonly Adjustment[]
  readonly fees: readonly Adjustment[]
  /** What is charged, in the smallest unit. */
  readonly actualPaymentAmount: number
  /** Without promotions. */
  readonly quotedPaymentAmount: number
}

export interface TokenQuote {
  readonly winc: string
  readonly fees: readonly Adjustment[]
  /** What the payment is worth in winston, before the fee. */
  readonly actualPaymentAmount: string
  readonly usdEquivalent: string
}

/** How long a promised price holds. */
export const quoteLifeMs = 30 * 60_000

const tooSmall = 'Crypto payment amount is too small! Token value must convert to at least one winc'

/** Turns money into winc. Every number is exact: whole numbers only, rounded as each line states. */
export class Quotes {
  constructor(
    private readonly oracle: Oracle,
    private readonly feePermille: number,
    private readonly promotions: Promotions,
  ) {}

  async ofToken(token: TokenName, amount: bigint): Promise<TokenQuote | Denied | Refusal> {
    const rates = await this.oracle.rates()
    if (isRefusal(rates)) return rates
    const worth = wincOfToken(token, amount, rates)
    const winc = afterFee(worth, this.feePermille)
    if (winc < 1n) return { denied: true, status: 400, text: tooSmall }
    return {
      winc: String(winc),
      fees: [feeOf(this.feePermille, String(winc - worth), 'winc')],
      actualPaymentAmount: String(worth),
      usdEquivalent: usdOfToken(token, amount, rates),
    }
  }

  /** `address`: who would be paid for, where promotions depend on it. */
  async ofFiat(
    currency: Currency,
    minor: bigint,
    codes: readonly string[],
    address: string | undefined,
  ): Promise<FiatQuote | Denied | Refusal> {
    const fault = amountFault(currency, minor)
    if (fault !== undefined) return { denied: true, status: 400, text: fault }
    const rates = await this.oracle.rates()
    if (isRefusal(rates)) return rates
    const promoted = await this.promotions.apply(codes, address, currency, minor, rates)
    if ('denied' in promoted) return promoted
    const fee = feeOfFiat(minor, this.feePermille)
    return {
      winc: String(wincOfFiat(currency, minor - fee, rates)),
      adjustments: promoted.adjustments,
      fees: [feeOf(this.feePermille, -Number(fee), currency)],
      actualPaymentAmount: Number(minor - promoted.discount),
      quotedPaymentAmount: Number(minor),
    }
  }

  rates(): Promise<Rates | Refusal> {
    return this.oracle.rates()
  }

  get fee(): number {
    return this.feePermille
  }
}
