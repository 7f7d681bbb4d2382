import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Meters } from '../actor/meter.js'
import { cdpAuthorizing } from '../admission/cdp-token.js'
import { Facilitator } from '../admission/facilitator.js'
import { Offers } from '../admission/offer.js'
import { type Denial, isDenial, type SettledCredits, type SettledPayment } from '../admission/protocol.js'
import { Cashier } from '../admission/settlement.js'
import { PaymentLedger } from '../admission/settlement-ledger.js'
import { cashierDefaults, Kinds } from '../admission/settlement-protocol.js'
import { type Usdc, usdcOf } from '../admission/usdc.js'
import { X402 } from '../admission/x402.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import type { Request } from '../http/exchange.js'
import { isRejected, type MoneyLedger } from '../ledger/port.js'
import type { Accounts } from './accounts.js'
import { isDenied } from './port.js'
import type { Prices } from './prices.js'
import type { Quotes } from './quotes.js'
import { afterFee, wincOfToken } from './rates.js'
import { accountOf } from './wallets.js'

/** Where USDC is received, and who settles it. Plain: it is cloned into the thread. */
export interface X402Options {
  readonly network: Usdc['network']
  /** Receives the payments; lower case. */
  readonly wallet: string
  readonly facilitatorUrl: string
  readonly protocol: 'http' | 'https'
  /** Folder of the records of settlements. */
  readonly recordsPath: string
  readonly verifyMs: number
  readonly settleMs: number
  /** Signs requests to the facilitator, where it is the provider's own. */
  readonly cdp?: { readonly keyId: string; readonly secret: string }
}

export interface X402TopUpParts {
  readonly options: X402Options
  readonly ledger: MoneyLedger
  readonly accounts: Accounts
  readonly prices: Prices
  readonly quotes: Quotes
  readonly meters: Meters
  readonly clock: Clock
  readonly log: Log
}

/** What a payment has put into a wallet. */
export interface X402Credited {
  readonly payment: string
  readonly transaction: string
  readonly winc: string
  /** Header lines with the receipt, each with CRLF in front. */
  readonly lines: string
}

/** An answer in the words of x402: an offer, or why a payment was not taken. */
export interface X402Answer {
  readonly status: number
  readonly json: unknown
  readonly lines: string
}

/** The price of such an amount tells how much a payment buys without what rounding takes. */
const sampleUnits = 10n ** 12n
/** USDC: less costs more to settle than it brings; more is no top-up any more. */
const bounds = { minimum: '0.001', maximum: '10000' }
const leastUnits = 1000n

const transferId = (payment: string): string => `x402:${payment}`

/** Top-ups in USDC without a transaction of the payer's own: a signed permission is settled by a facilitator. */
export class X402TopUps {
  readonly #cashier: Cashier
  readonly #facilitator: Facilitator
  readonly #x402: X402

  constructor(private readonly parts: X402TopUpParts) {
    const { options, clock, log, meters } = parts
    const { network, wallet, facilitatorUrl, protocol, verifyMs, settleMs, cdp } = options
    const kinds = new Kinds()
    this.#facilitator = new Facilitator(
      { url: facilitatorUrl, usdc: usdcOf[network], verifyMs, settleMs, connectionsMax: 16 },
      clock,
      log,
      cdp === undefined ? undefined : cdpAuthorizing(cdp.keyId, cdp.secret, clock),
    )
    const credits: SettledCredits = {
      credit: (address, payment, _, settled) => this.#credit(address, payment, settled),
    }
    // There is no witness of the chain: a transfer that the gateway's own cashier has settled must not count here again.
    this.#cashier = new Cashier({
      ...{ ledger: new PaymentLedger(options.recordsPath), facilitator: this.#facilitator, credits },
      ...{ kinds, clock, log, options: { ...cashierDefaults, waitMs: verifyMs } },
    })
    // One unit for each "byte": amounts are asked for as they are.
    const tariff = { perByte: '0.000001', ...bounds, multiplier: 1 }
    const description = 'Credits for permanent storage'
    const offers = new Offers({ network, wallet, tariff, protocol, facilitatorUrl, description }, kinds)
    const cashier = {
      ask: (order: Parameters<Cashier['handle']>[0]) => this.#cashier.handle(order),
    }
    this.#x402 = new X402({ offers, cashier, clock, meters })
    this.#cashier.start()
  }

  get network(): string {
    return this.parts.options.network
  }

  /** The offer for what so many bytes cost. Refusals: `upstream`. */
  async offer(request: Request, bytes: number): Promise<X402Answer | Refusal> {
    const units = await this.#unitsOf(bytes)
    if (isRefusal(units)) return units
    const charge = { request, bytes: Number(units), contentType: 'application/json' }
    return told(this.#x402.demand(charge))
  }

  /** Takes the payment that a request carries, for a wallet; undefined: it carries none. */
  async take(request: Request, address: string): Promise<X402Credited | X402Answer | undefined> {
    const taking = this.#x402.topUp(request, address, request.remoteAddress)
    if (taking === undefined) return undefined
    const paid = await taking
    if (isDenial(paid)) return told(paid)
    const transfer = await this.parts.ledger.transfer(transferId(paid.payment))
    if (transfer === undefined) throw new Error(`the payment ${paid.payment} is settled and not credited`)
    if (transfer.credit !== accountOf(await this.parts.accounts.wallets.find(address)))
      return { status: 400, json: { error: 'The payment has topped up another wallet' }, lines: '' }
    const { amount, reference } = transfer
    return { payment: paid.payment, transaction: reference, winc: String(amount), lines: paid.lines }
  }

  async close(): Promise<void> {
    await this.#cashier.close()
    await this.#facilitator.close()
  }

  /** USDC whose winc is enough for an item of so many bytes, rounded up. */
  async #unitsOf(bytes: number): Promise<bigint | Refusal> {
    const { prices, quotes } = this.parts
    const price = await prices.ofItem(bytes)
    if (isRefusal(price)) return price
    const rates = await quotes.rates()
    if (isRefusal(rates)) return rates
    const bought = afterFee(wincOfToken('base-usdc', sampleUnits, rates), quotes.fee)
    if (bought < 1n) return refuse('upstream', 'upstream', 'USDC is worth nothing')
    // One more, because each of the two fees and prices is rounded down.
    const units = (price * sampleUnits) / bought + 1n
    return units < leastUnits ? leastUnits : units
  }

  /** Called until it does not throw, again after a restart: the id of the payment decides. */
  async #credit(
    address: string,
    payment: string,
    { units, payer, transaction }: SettledPayment,
  ): Promise<'credited' | 'known'> {
    const id = transferId(payment)
    if ((await this.parts.ledger.transfer(id)) !== undefined) return 'known'
    const quote = await this.parts.quotes.ofToken('base-usdc', BigInt(units))
    if (isRefusal(quote)) throw new Error(quote.message)
    if (isDenied(quote)) throw new Error(quote.text)
    const { winc, usdEquivalent } = quote
    const token = this.parts.options.network === 'base' ? 'base-usdc' : 'base-sepolia-usdc'
    const about = { type: 'crypto', tokenType: token, tokenQuantity: units, usdEquivalent }
    const outcome = await this.parts.accounts.credit({
      ...{ id, address, winc: BigInt(winc), source: 'source:x402', reason: 'x402_topup' },
      ...{ reference: transaction, about: { ...about, senderAddress: payer } },
    })
    if (!isRejected(outcome)) return 'credited'
    // Credited by another thread at another price.
    if (outcome.rejected === 'differs') return 'known'
    throw new Error(`x402 payment ${payment}: ${outcome.rejected} at ${outcome.at}`)
  }
}

function told({ status, body, lines }: Denial): X402Answer {
  return { status, json: JSON.parse(Buffer.from(body).toString()) as unknown, lines }
}
