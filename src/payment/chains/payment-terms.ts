import { isRefusal, type Refusal } from '../../format/refusal.js'
import type { ExcludedSenders } from '../books/excluded-senders.js'
import { addressKind, spelled, type Wallets } from '../books/wallets.js'
import { isDenied } from '../credits-port.js'
import { type Quotes, quoteLifeMs } from '../prices/quotes.js'
import type { TokenName } from '../prices/rates.js'
import type { SeenPayment } from './seen-payment.js'
import type { TopUp } from './top-up.js'

/** Why nothing is credited for a transaction, for the client. */
export interface Unpayable {
  readonly status: 400 | 403 | 404
  readonly text: string
}

export interface PaymentTermsParts {
  readonly wallets: Pick<Wallets, 'resolve' | 'commitToWalletOf' | 'takeOverAlias'>
  readonly quotes: Pick<Quotes, 'ofToken'>
  /** Token to the address that is paid. */
  readonly addresses: Readonly<Record<string, string>>
  /** Senders whose payments are not taken. */
  readonly excluded: Pick<ExcludedSenders, 'has'>
  readonly now: () => number
}

type Facts = Pick<TopUp, 'quantity' | 'sender' | 'recipient' | 'beneficiary' | 'wallet' | 'height'>
type Price = Pick<TopUp, 'winc' | 'usdEquivalent' | 'pricedMs'>

/** What a payment that a chain shows comes to: for whom, and how many credits. */
export class PaymentTerms {
  constructor(private readonly parts: PaymentTermsParts) {}

  /** A payment at its first report, for the record that `TopUps` writes. Refusals: its price is not known now. */
  async atReport(
    token: TokenName,
    chain: string,
    id: string,
    seen: SeenPayment,
  ): Promise<TopUp | Unpayable | Refusal> {
    const facts = await this.#facts(token, id, seen)
    if ('status' in facts) return facts
    const price = await this.#price(token, seen)
    if (isRefusal(price) || 'status' in price) return price
    return {
      state: 'pending',
      chain,
      token,
      id,
      ...facts,
      ...price,
      createdMs: this.parts.now(),
      timesCredited: 0,
    }
  }

  /**
   * The same payment when it is final: all fields as its chain has them. The price is the one of the report while a quote holds
   * and where the amount is the same. With a price that held longer, a sender who delays his transaction could choose between two
   * prices. Refusals: its price is not known now.
   */
  async whenFinal(noted: TopUp, seen: SeenPayment): Promise<TopUp | Unpayable | Refusal> {
    const { token, id, quantity, createdMs, pricedMs = createdMs } = noted
    const { height: _height, beneficiary: _beneficiary, ...rest } = noted
    const facts = await this.#facts(token, id, seen, noted)
    if ('status' in facts) return facts
    const isHeld = quantity === facts.quantity && this.parts.now() - pricedMs < quoteLifeMs
    if (isHeld) return { ...rest, ...facts }
    const price = await this.#price(token, seen)
    return isRefusal(price) || 'status' in price ? price : { ...rest, ...facts, ...price }
  }

  /** What its chain has differently from what was credited, in words for the operator; undefined where nothing. */
  difference(
    { token, quantity, sender, recipient, beneficiary }: TopUp,
    seen: SeenPayment,
  ): string | undefined {
    if (seen.recipient !== (recipient ?? this.#own(token)))
      return 'credited here, and paid to another address'
    if (String(seen.quantity) !== quantity) return `${seen.quantity} on its chain, ${quantity} here`
    if (seen.sender !== sender) return `sent by ${seen.sender} on its chain, by ${sender} here`
    // Records of earlier versions do not say what the sender named.
    if (recipient === undefined || seen.beneficiary === beneficiary) return undefined
    return `for ${seen.beneficiary ?? 'its sender'} on its chain, for ${beneficiary ?? 'its sender'} here`
  }

  #own(token: TokenName): string {
    return spelled(this.parts.addresses[token] ?? '')
  }

  async #facts(token: TokenName, id: string, seen: SeenPayment, noted?: TopUp): Promise<Facts | Unpayable> {
    const { excluded, wallets } = this.parts
    const { quantity, sender, account = sender, recipient, beneficiary, height } = seen
    // An address that was in use at the report is the service's also where the settings name another one since.
    if (recipient !== this.#own(token) && recipient !== noted?.recipient)
      return { status: 400, text: `Payment transaction '${id}' was not sent to the address of this service` }
    if (sender === recipient)
      return { status: 400, text: `Payment transaction '${id}' was sent by this service to itself` }
    if (quantity < 1n) return { status: 400, text: 'Transaction quantity must be greater than 0' }
    // Payments that were reported before a sender was excluded are taken.
    if (sender !== noted?.sender && (excluded.has(sender) || excluded.has(account))) {
      const text = `Payment transaction '${id}' has sender that is on the excluded address list: '${sender}'`
      return { status: 403, text }
    }
    const isForAnother =
      beneficiary !== undefined && addressKind(beneficiary) !== undefined && spelled(beneficiary) !== sender
    const wallet = await wallets.resolve(isForAnother ? beneficiary : account)
    return {
      quantity: String(quantity),
      sender,
      recipient,
      wallet,
      ...(beneficiary === undefined ? {} : { beneficiary }),
      ...(height === undefined ? {} : { height }),
    }
  }

  async #price(token: TokenName, { quantity }: SeenPayment): Promise<Price | Unpayable | Refusal> {
    const quote = await this.parts.quotes.ofToken(token, quantity)
    if (isRefusal(quote)) return quote
    if (isDenied(quote)) return { status: 400, text: quote.text }
    const { winc, usdEquivalent } = quote
    return { winc, usdEquivalent, pricedMs: this.parts.now() }
  }
}
