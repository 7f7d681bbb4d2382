import type { Clock } from '../actor/clock.js'
import type { Address } from '../actor/mailbox-address.js'
import type { Meter, Meters } from '../actor/meter.js'
import { isRefusal } from '../format/refusal.js'
import { codeOfStatus } from '../http/error-codes.js'
import type { Request } from '../http/exchange.js'
import { type Charge, type Denial, type Paid, type Payments, receiptLine } from './admission-port.js'
import { authorizationDigest, signatureDigest, signerOf } from './authorization.js'
import type { CashierReply, CashierRequest, PaymentOrder } from './cashier-messages.js'
import { late } from './cashier-replies.js'
import { inBase64, type Offers, type Quote } from './payment-offer.js'
import type { Paywall } from './paywall.js'
import { isUnreadable, type Presented, paymentOf, type ReadPayment } from './presented.js'

export interface X402Parts {
  readonly offers: Offers
  readonly cashier: Pick<Address<CashierRequest, CashierReply>, 'ask'>
  /** Absent: browsers get what other clients get. */
  readonly paywall?: Paywall
  readonly clock: Clock
  readonly meters: Meters
}

type Outcome = 'settled' | 'refused' | 'malformed' | 'pending' | 'down'

/** What is wrong with a payment. */
export interface Fault {
  readonly error: string
  readonly message: string
  readonly payer?: string
}

/** Who gets what is paid, and who sends the request. */
type Who = Pick<PaymentOrder, 'beneficiary' | 'asker'>

/** The longest validity that is taken: a record is kept while its payment could settle. Stock clients sign 5 minutes. */
const validMaxSeconds = 24 * 3600

/** What a look finds of a payment that is no refusal: it would settle (`good`), or is settled or being settled (`made`). */
export type Looked = 'good' | 'made'

/** A payment of a request: what is to be paid, and by what. */
interface Payment {
  /** Absent: the payment came to another service. */
  readonly request?: Request
  readonly quote: Quote
  readonly read: ReadPayment
}

/** The same where the payment could be read and agrees with the quote, with the order for the cashier. */
interface OrderedPayment extends Payment {
  readonly read: Presented
  readonly order: PaymentOrder
}

/** Payments of requests, on an edge thread or in a payment service: offers, cheap checks, and the way to the cashier. */
export class X402 implements Payments {
  readonly #offered: Meter
  readonly #outcomes: Readonly<Record<Outcome, Meter>>

  constructor(private readonly parts: X402Parts) {
    const of = (outcome: Outcome): Meter => parts.meters.of('x402_payments_total', { outcome })
    this.#offered = parts.meters.of('x402_offers_total')
    this.#outcomes = {
      settled: of('settled'),
      refused: of('refused'),
      malformed: of('malformed'),
      pending: of('pending'),
      down: of('down'),
    }
  }

  demand(charge: Charge, fault?: Fault): Denial {
    const { offers } = this.parts
    return this.#demand({ request: charge.request, quote: offers.quote(charge) }, fault, '')
  }

  /** The 402 for a request to another service; `quote` has all of it. No page for browsers. */
  offer(quote: Quote, fault?: Fault): Denial {
    return this.#demand({ quote }, fault, '')
  }

  /** Settles a payment that came elsewhere, of exactly `quote.units`: at most once, and credits it first. Never rejects. */
  settle(read: ReadPayment, quote: Quote, who: Who): Promise<Paid | Denial> {
    return this.#haveSettled({ read, quote }, who)
  }

  /** Looks whether a payment that came elsewhere, of exactly `quote.units`, would settle. Moves nothing. Never rejects. */
  async look(read: ReadPayment, quote: Quote, who: Who): Promise<Looked | Denial> {
    const ordered = this.#ordered({ read, quote }, who)
    if ('status' in ordered) return ordered
    const reply = await this.parts.cashier.ask({ look: ordered.order })
    if (isRefusal(reply)) return cashierAway
    if (reply.state === 'good' || reply.state === 'made') return reply.state
    if (reply.state === 'settled') throw new Error('a payment was to be looked at, and is settled')
    return this.#denied(ordered, reply)
  }

  /**
   * Whether the key of the payer has signed it, without a look at the chain or the amount. False, too, for wallets of contracts,
   * whose signatures only the facilitator can check.
   */
  isSignedByPayer({ authorization, signature }: Presented): boolean {
    const digest = authorizationDigest(this.parts.offers.usdc, authorization)
    return signerOf(digest, Buffer.from(signature.slice(2), 'hex')) === authorization.from.toLowerCase()
  }

  pay(charge: Charge, client: string): Promise<Paid | Denial> | undefined {
    const read = paymentOf(charge.request)
    if (read === undefined) return undefined
    const quote = this.parts.offers.quote(charge)
    return this.#haveSettled({ request: charge.request, read, quote }, { beneficiary: client, asker: client })
  }

  topUp(request: Request, beneficiary: string, asker: string): Promise<Paid | Denial> | undefined {
    const charge = { request, bytes: 0, contentType: 'application/json' }
    const read = paymentOf(request)
    if (read === undefined) return undefined
    const quote = this.parts.offers.quote(charge)
    const given = isUnreadable(read) ? quote : this.#givenAmount(quote, read)
    return this.#haveSettled({ request, read, quote: given }, { beneficiary, asker })
  }

  /** A top-up costs what its payer gives, from the least to the most that any answer costs. */
  #givenAmount(quote: Quote, { authorization }: Presented): Quote {
    const { price } = this.parts.offers
    const units = BigInt(authorization.value)
    const most = price.units(Number.MAX_SAFE_INTEGER)
    return units > quote.units && units <= most ? { ...quote, units } : quote
  }

  /** Has the cashier settle a payment, and credit it. */
  async #haveSettled(payment: Payment, who: Who): Promise<Paid | Denial> {
    const ordered = this.#ordered(payment, who)
    if ('status' in ordered) return ordered
    const { read, order } = ordered
    const reply = await this.parts.cashier.ask({ pay: order })
    if (isRefusal(reply)) return cashierAway
    if (reply.state === 'good' || reply.state === 'made') throw new Error('a payment was only looked at')
    if (reply.state !== 'settled') return this.#denied(ordered, reply)
    this.#outcomes.settled.add(1)
    const { transaction, tokens } = reply
    const lines = this.receipt(read.version, { success: true, transaction, payer: order.payer })
    const { multiplier } = this.parts.offers.options.tariff
    return { tokens, payment: order.payment, amount: order.units, multiplier, lines }
  }

  /** The payment with its order for the cashier. A denial: it cannot be read, or is not what the quote demands. */
  #ordered(payment: Payment, who: Who): OrderedPayment | Denial {
    const { read, quote } = payment
    if (isUnreadable(read)) {
      this.#outcomes.malformed.add(1)
      return plain(400, 'malformed_payment', read.unreadable)
    }
    const fault = this.#faultOf(read, quote)
    if (fault !== undefined) return this.#demand(payment, fault, '')
    const digest = authorizationDigest(this.parts.offers.usdc, read.authorization)
    return { ...payment, read, order: this.#order(read, quote, digest, who) }
  }

  /** The answer to a payment that the cashier did not settle. */
  #denied(ordered: OrderedPayment, reply: Exclude<CashierReply, { state: 'settled' | Looked }>): Denial {
    if (reply.state === 'busy')
      return plain(503, 'payment_service_unavailable', 'busy: retry with the same payment', 1, unrequested)
    if (reply.state === 'pending' || reply.state === 'down') this.#outcomes[reply.state].add(1)
    switch (reply.state) {
      case 'elsewhere':
      case 'doubtful':
        this.#outcomes.refused.add(1)
        return reply.state === 'elsewhere' ? usedElsewhere : undecided
      case 'refused': {
        const { read, order } = ordered
        const { stage, reason } = reply
        const receipt = { success: false, errorReason: reason, transaction: '', payer: order.payer }
        const lines = stage === 'settle' ? this.receipt(read.version, receipt) : ''
        return this.#demand(ordered, this.#refusal(read, stage, reason), lines)
      }
      case 'pending':
        return plain(
          503,
          'settlement_pending',
          'the payment is being settled: retry with the same payment',
          2,
        )
      case 'down':
        return plain(
          503,
          'payment_service_unavailable',
          'payments cannot be taken now; nothing was charged',
          5,
          unrequested,
        )
    }
  }

  /** Everything that can be seen without a key or another machine. The first fault counts. */
  #faultOf(read: Presented, { units }: Quote): Fault | undefined {
    const { usdc, options, has } = this.#terms(read.version)
    const { to, from, value, validAfter, validBefore } = read.authorization
    const now = this.parts.clock.now() / 1000
    const wrong = (reason: string): Fault => this.#refusal(read, 'verify', reason)
    if (!has) return wrong('invalid_x402_version')
    if (read.scheme !== 'exact') return wrong('unsupported_scheme')
    if (read.network !== (read.version === 1 ? usdc.network : usdc.caip2)) return wrong('invalid_network')
    if (to.toLowerCase() !== options.wallet || from.toLowerCase() === options.wallet) {
      return wrong('invalid_exact_evm_payload_recipient_mismatch')
    }
    if (value !== units.toString()) return wrong('invalid_exact_evm_payload_authorization_value')
    if (read.accepted !== undefined) {
      const { asset, payTo, amount } = read.accepted
      const same =
        asset.toLowerCase() === usdc.address.toLowerCase() && payTo.toLowerCase() === options.wallet
      if (!same || amount !== value) return wrong('invalid_payment_requirements')
    }
    // Whether its time is over is seen by the cashier: it may have been settled in its time.
    if (Number(validBefore) > now + validMaxSeconds) return wrong(late)
    return Number(validAfter) >= now
      ? wrong('invalid_exact_evm_payload_authorization_valid_after')
      : undefined
  }

  #terms(version: 1 | 2): Pick<Offers, 'usdc' | 'options'> & { has: boolean } {
    const { offers } = this.parts
    return { usdc: offers.usdc, options: offers.options, has: offers.has(version) }
  }

  #refusal({ authorization }: Presented, stage: 'verify' | 'settle', reason: string): Fault {
    const error = stage === 'verify' ? 'payment_verification_failed' : 'payment_settlement_failed'
    return { error, message: reason, payer: authorization.from.toLowerCase() }
  }

  /** Built of what was checked, and of nothing else that the client may have written. */
  #order(read: Presented, quote: Quote, digest: Uint8Array, who: Who): PaymentOrder {
    const { offers } = this.parts
    const { version, signature, authorization } = read
    const payload = { signature, authorization }
    const terms = version === 1 ? offers.terms1(quote) : offers.terms2(quote)
    const { resource: url, mimeType } = quote
    const paymentPayload =
      version === 1
        ? { x402Version: 1, scheme: read.scheme, network: read.network, payload }
        : { x402Version: 2, resource: { url, description: '', mimeType }, accepted: terms, payload }
    const payer = authorization.from.toLowerCase()
    return {
      payment: `${offers.usdc.chainId}:${payer}:${authorization.nonce.toLowerCase()}`,
      digest: Buffer.from(digest).toString('hex'),
      signature,
      signed: signatureDigest(signature),
      version,
      payer,
      ...who,
      resource: url,
      units: quote.units.toString(),
      tokens: offers.price.tokens(quote.units, quote.bytes),
      validBefore: Number(authorization.validBefore),
      message: JSON.stringify({ x402Version: version, paymentPayload, paymentRequirements: terms }),
    }
  }

  /**
   * Header lines with the receipt: under the name of version 1, which the interface promises, and for version 2 under its own
   * too.
   */
  receipt(version: 1 | 2, settlement: object): string {
    const { network, caip2 } = this.parts.offers.usdc
    const encoded = inBase64({ ...settlement, network: version === 1 ? network : caip2 })
    const own = version === 2 ? `\r\nPAYMENT-RESPONSE: ${encoded}` : ''
    return `${receiptLine}${encoded}${own}`
  }

  #demand({ request, quote }: Omit<Payment, 'read'>, fault: Fault | undefined, lines: string): Denial {
    const { offers, paywall } = this.parts
    if (!offers.has(1) && !offers.has(2)) {
      return plain(429, 'Too Many Requests', 'the allowance is used up, and payments cannot be taken now', 60)
    }
    const usualMessage = 'Payment required to access this resource'
    if (fault !== undefined) this.#outcomes.refused.add(1)
    this.#offered.add(1)
    const { error, message, payer } = fault ?? { error: 'payment_required', message: usualMessage }
    const details = { error, message, ...(payer === undefined ? {} : { payer }) }
    const reason = fault === undefined ? 'payment required' : `${error}: ${message}`
    const head = `\r\nCache-Control: no-store${offers.lines(quote, message)}${lines}`
    if (paywall !== undefined && request !== undefined && isBrowser(request)) {
      const page = paywall.page(request, quote)
      return { status: 402, contentType: page.contentType, lines: head + page.lines, body: page.body, reason }
    }
    const body = `${JSON.stringify(offers.body(quote, details))}\n`
    return { status: 402, contentType: 'application/json; charset=utf-8', lines: head, body, reason }
  }
}

/** Whether the offer is a page: the rule of x402 itself, which wallets and other gateways expect (not `takesPages`). */
function isBrowser(request: Request): boolean {
  const takesPages = request.header('accept')?.toLowerCase().includes('text/html') ?? false
  return takesPages && (request.header('user-agent')?.includes('Mozilla') ?? false)
}

/** Stated where no settlement was requested for this order. One for the same payment may have been before. */
const unrequested = { requested: false }

/** An answer without an offer: a client that gets one would sign again. */
function plain(
  status: 400 | 409 | 429 | 503,
  error: string,
  message: string,
  retrySeconds?: number,
  more: object = {},
): Denial {
  const retry = retrySeconds === undefined ? '' : `\r\nRetry-After: ${retrySeconds}`
  return {
    status,
    contentType: 'application/json; charset=utf-8',
    lines: `\r\nCache-Control: no-store${retry}`,
    body: `${JSON.stringify({ error, code: codeOfStatus(status), message, ...more })}\n`,
    reason: `${error}: ${message}`,
  }
}

/** Without the beneficiary: who brings the payment may have read it on the chain. */
const usedElsewhere = plain(
  409,
  'payment_already_used',
  'the payment was made for another client or bucket, and counts there',
)

const undecided = plain(
  409,
  'settlement_unknown',
  'whether this payment was made could not be found out: ask the operator before you pay again',
)

/** The cashier's thread did not answer: the payment may have been settled. */
const cashierAway = plain(503, 'payment_service_unavailable', 'retry with the same payment', 1)
