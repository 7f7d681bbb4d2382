import { isDenial, type SettledPayment } from '../../admission/admission-port.js'
import { signatureDigest } from '../../admission/authorization.js'
import { isOfContract } from '../../admission/lanes.js'
import { resourceOf } from '../../admission/payment-offer.js'
import { isUnreadable, paymentName, paymentOf } from '../../admission/presented.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import type { Request } from '../../http/exchange.js'
import { isRejected, type MoneyLedger } from '../../ledger/ledger-port.js'
import type { Transfer } from '../../ledger/transfer.js'
import type { Accounts } from '../books/accounts.js'
import { accountOf } from '../books/wallets.js'
import { isDenied, type UsdcAnswer } from '../credits-port.js'
import type { Quotes } from '../prices/quotes.js'
import { creditedTransfer } from './credited-transfer.js'
import { usdcSource, usdcTransferId } from './usdc-transfers.js'
import { answerOfDenial, type X402Processor } from './x402-processor.js'

export interface X402TopUpParts {
  readonly ledger: MoneyLedger
  readonly accounts: Accounts
  readonly quotes: Pick<Quotes, 'ofToken'>
}

/** What a payment has put into a wallet. */
export interface X402Credited {
  readonly payment: string
  readonly transaction: string
  readonly winc: string
  /** Header lines with the receipt, each with CRLF in front. */
  readonly lines: string
}

/** Top-ups in USDC without a transaction of the payer's own: a signed permission is settled by a facilitator. */
export class X402TopUps {
  constructor(
    private readonly parts: X402TopUpParts,
    private readonly processor: X402Processor,
  ) {}

  get network(): string {
    return this.processor.network
  }

  /** The absolute address of a request. */
  resourceOf(request: Request): string {
    return resourceOf(request, this.processor.protocol)
  }

  /** The offer for what so many bytes cost. Refusals: `upstream`. */
  async offer(request: Request, bytes: number): Promise<UsdcAnswer | Refusal> {
    const units = await this.processor.unitsOf(bytes)
    if (isRefusal(units)) return units
    // The processor's price is one unit for each byte, so this offer has an amount of `units`.
    const charge = { request, bytes: Number(units), contentType: 'application/json' }
    return answerOfDenial(this.processor.x402.demand(charge))
  }

  /** Takes the payment that a request carries, for a wallet. `asker`: who sends the request. Undefined: it carries no payment. */
  async take(
    request: Request,
    asker: string,
    address: string,
  ): Promise<X402Credited | UsdcAnswer | undefined> {
    const taking =
      (await this.#creditedBefore(request, address)) ?? this.processor.x402.topUp(request, address, asker)
    if (taking === undefined) return undefined
    const paid = await taking
    if ('transaction' in paid || 'json' in paid) return paid
    if (isDenial(paid)) return answerOfDenial(paid)
    const transfer = await creditedTransfer(this.parts.ledger, () => this.processor.cashier, paid.payment)
    return this.#answerOf(transfer, paid, address)
  }

  /** What a payment that its payer has signed has credited already, here or at another service with this ledger. */
  async #creditedBefore(request: Request, address: string): Promise<X402Credited | UsdcAnswer | undefined> {
    const read = paymentOf(request)
    if (read === undefined || isUnreadable(read)) return undefined
    const payment = paymentName(read)
    const { x402 } = this.processor
    if (payment === undefined || !(isOfContract(read) || x402.isSignedByPayer(read))) return undefined
    const transfer = await this.parts.ledger.transfer(usdcTransferId(payment))
    if (transfer === undefined) return undefined
    // Only the chain can check the signature of a contract's wallet: anybody can write one under the name of a payment.
    const signed = transfer.about.signed ?? this.processor.cashier.find(payment)?.signed
    if (isOfContract(read) && signed !== signatureDigest(read.signature))
      return { status: 400, json: { error: 'The payment was made with another signature' }, lines: '' }
    const { reference: transaction, about } = transfer
    const payer = about.senderAddress ?? about.payer ?? ''
    const lines = x402.receipt(read.version, { success: true, transaction, payer })
    return this.#answerOf(transfer, { payment, lines }, address)
  }

  async #answerOf(
    { credit, amount, reference: transaction }: Transfer,
    { payment, lines }: Pick<X402Credited, 'payment' | 'lines'>,
    address: string,
  ): Promise<X402Credited | UsdcAnswer> {
    if (credit !== accountOf(await this.parts.accounts.wallets.resolve(address)))
      return { status: 400, json: { error: 'The payment has topped up another wallet' }, lines: '' }
    return { payment, transaction, winc: String(amount), lines }
  }

  /** Puts settled money into the wallet that it tops up. Called by `creditSettled` until it does not throw. */
  async creditWallet(
    address: string,
    payment: string,
    { units, payer, transaction, signed }: SettledPayment,
  ): Promise<'credited' | 'known'> {
    const id = usdcTransferId(payment)
    if ((await this.parts.ledger.transfer(id)) !== undefined) return 'known'
    const quote = await this.parts.quotes.ofToken('base-usdc', BigInt(units))
    if (isRefusal(quote)) throw new Error(quote.message)
    if (isDenied(quote)) throw new Error(quote.text)
    const { winc, usdEquivalent } = quote
    const token = this.processor.network === 'base' ? 'base-usdc' : 'base-sepolia-usdc'
    const about = { type: 'crypto', tokenType: token, tokenQuantity: units, usdEquivalent }
    const outcome = await this.parts.accounts.credit({
      id,
      address,
      winc: BigInt(winc),
      source: usdcSource,
      reason: 'x402_topup',
      reference: transaction,
      about: { ...about, senderAddress: payer, ...(signed === undefined ? {} : { signed }) },
    })
    if (!isRejected(outcome)) return 'credited'
    // Credited by another thread at another price.
    if (outcome.rejected === 'differs') return 'known'
    throw new Error(`x402 payment ${payment}: ${outcome.rejected} at ${outcome.at}`)
  }
}
