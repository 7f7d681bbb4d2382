import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { Outage } from '../actor/outage.js'
import { publicReason, settleFailed } from './cashier-messages.js'
import { type Authorizing, JsonPeer, type Read, type Unread } from './json-peer.js'
import type { Usdc } from './usdc.js'

export interface FacilitatorOptions {
  /** http(s), with or without a trailing slash. */
  readonly url: string
  readonly usdc: Usdc
  /** A verification may take so long, and the list of what is supported. */
  readonly verifyMs: number
  /** Timeout of one attempt to settle; requests of clients do not wait for it. */
  readonly settleMs: number
  /** Connections at most. */
  readonly connectionsMax: number
}

export type Verified =
  | { readonly verdict: 'valid' }
  | { readonly verdict: 'invalid'; readonly reason: string }
  | { readonly verdict: 'nothing'; readonly why: string }

export type Settled =
  | { readonly result: 'settled'; readonly transaction: string }
  /** `isClear`: it refused before anything was sent to the chain. Otherwise the money may have moved. */
  | { readonly result: 'refused'; readonly reason: string; readonly isClear: boolean }
  /** The settlement is under way: to be requested again. */
  | { readonly result: 'pending' }
  /** It refused the request, or was not reached: this attempt certainly moved no money. */
  | { readonly result: 'unrequested'; readonly why: string }
  /** No answer, or an inconsistent one: the money may have moved. */
  | { readonly result: 'nothing'; readonly why: string }

type Fields = Read['body']

/**
 * The client of an x402 facilitator, which submits payments to the chain. All of its answers are checked, and none of
 * its texts is passed on to clients.
 */
export class Facilitator {
  readonly #peer: JsonPeer
  readonly #outage: Outage

  constructor(
    private readonly options: FacilitatorOptions,
    clock: Clock,
    private readonly log: Log,
    authorizing?: Authorizing,
  ) {
    this.#peer = new JsonPeer(options, clock, authorizing)
    const down =
      'the facilitator (X_402_USDC_FACILITATOR_URL) gives no usable answer: no payments are taken until it does'
    this.#outage = new Outage(log, down, 'the facilitator answers again')
  }

  /** Versions of the protocol in which it settles exact payments on our chain; undefined where it does not answer. */
  async supported(): Promise<(1 | 2)[] | undefined> {
    const answer = await this.#peer.ask('/supported', undefined, this.options.verifyMs)
    if ('why' in answer || answer.status !== 200 || !Array.isArray(answer.body.kinds)) {
      this.#outage.failed({ request: 'supported', why: whyOf(answer) })
      return undefined
    }
    this.#outage.well()
    const { network, caip2 } = this.options.usdc
    const kinds = answer.body.kinds.filter(
      (kind): kind is Fields => typeof kind === 'object' && kind !== null,
    )
    return ([1, 2] as const).filter((version) =>
      kinds.some((kind) => {
        const named = version === 1 ? kind.network === network : isNamed(kind.network, caip2)
        return kind.x402Version === version && kind.scheme === 'exact' && named
      }),
    )
  }

  /** Whether this payment would settle. `message` is the JSON body. */
  async verify(message: string, payer: string): Promise<Verified> {
    const verified = await this.#verify(message, payer)
    if (verified.verdict === 'nothing') this.#outage.failed({ request: 'verify', why: verified.why })
    else this.#outage.well()
    return verified
  }

  async #verify(message: string, payer: string): Promise<Verified> {
    const answer = await this.#peer.ask('/verify', message, this.options.verifyMs)
    if ('why' in answer) return { verdict: 'nothing', why: answer.why }
    const { status, body } = answer
    // Some facilitators answer 4xx with the same body. A 5xx is the facilitator's failure and never the payer's
    // fault.
    if (status >= 500 || typeof body.isValid !== 'boolean') return { verdict: 'nothing', why: whyOf(answer) }
    if (!body.isValid) {
      this.log.debug({ payer, reason: clip(body.invalidReason) }, 'the facilitator refused a payment')
      return { verdict: 'invalid', reason: publicReason(body.invalidReason, 'invalid_payment') }
    }
    if (status !== 200) return { verdict: 'nothing', why: `valid, with status ${status}` }
    return isPayer(body, payer)
      ? { verdict: 'valid' }
      : { verdict: 'nothing', why: 'it verified another payer' }
  }

  /** Moves the money. */
  async settle(message: string, payer: string): Promise<Settled> {
    const settled = await this.#settle(message, payer)
    const { result } = settled
    if (result === 'unrequested') this.#outage.failed({ request: 'settle', why: settled.why })
    // No clear answer is logged with the payment that it is about.
    else if (result !== 'nothing') this.#outage.well()
    return settled
  }

  async #settle(message: string, payer: string): Promise<Settled> {
    const answer = await this.#peer.ask('/settle', message, this.options.settleMs)
    if ('why' in answer) return { result: answer.sent ? 'nothing' : 'unrequested', why: answer.why }
    const { status, body } = answer
    const { success, errorReason, txHash, transaction = txHash } = body
    if (typeof success !== 'boolean' || status >= 500) {
      // CDP's word for a request that it could not read.
      const isUnread = status === 400 && body.errorType === 'invalid_request'
      return { result: isUnread || turnedAway.has(status) ? 'unrequested' : 'nothing', why: whyOf(answer) }
    }
    if (!success) {
      if (errorReason === 'settlement_pending') return { result: 'pending' }
      this.log.debug({ payer, reason: clip(errorReason) }, 'the facilitator did not settle a payment')
      const reason = publicReason(errorReason, settleFailed)
      return { result: 'refused', reason, isClear: isUnsaid(transaction) && isBeforeSending(errorReason) }
    }
    const named = typeof transaction === 'string' && /^0x[0-9a-fA-F]{64}$/.test(transaction)
    if (status !== 200 || !named || !isPayer(body, payer) || !this.#isOurs(body.network)) {
      return { result: 'nothing', why: 'it settled something else' }
    }
    return { result: 'settled', transaction: transaction.toLowerCase() }
  }

  async close(): Promise<void> {
    await this.#peer.close()
  }

  #isOurs(network: unknown): boolean {
    const { network: short, caip2 } = this.options.usdc
    return isUnsaid(network) || network === short || network === caip2
  }
}

/**
 * Answers of a server that did not begin: not authorized, not found, wrong method or type, too large, limited. After any other
 * one the settlement may be under way: some facilitators answer 400 where they waited in vain for a receipt.
 */
const turnedAway = new Set([401, 403, 404, 405, 411, 413, 415, 429])

/** Reasons of the x402 specification for what a facilitator checks before it sends anything. */
const reasonsBeforeSending = new Set([
  'insufficient_funds',
  'invalid_network',
  'invalid_payload',
  'invalid_payment',
  'invalid_payment_requirements',
  'invalid_scheme',
  'invalid_x402_version',
  'network_mismatch',
  'unsupported_network',
  'unsupported_scheme',
])
const fieldsBeforeSending =
  /^invalid_exact_evm_(payload_|authorization_|signature$|scheme$|network_mismatch$)/

/**
 * Whether a refusal states a check that comes before the transaction is sent. Facilitators also refuse after that: where the wait
 * for the receipt failed, the transaction may be mined a moment later. So words that are not known here do not count.
 */
function isBeforeSending(reason: unknown): boolean {
  return typeof reason === 'string' && (reasonsBeforeSending.has(reason) || fieldsBeforeSending.test(reason))
}

/** Whether a field is absent; some facilitators write null or an empty text instead. */
const isUnsaid = (value: unknown): boolean => value === undefined || value === null || value === ''

function whyOf(answer: Read | Unread): string {
  return 'why' in answer
    ? answer.why
    : `status ${answer.status}, fields ${clip(Object.keys(answer.body).join())}`
}

function clip(text: unknown): string {
  return String(text).slice(0, 200)
}

function isPayer({ payer }: Fields, wanted: string): boolean {
  return isUnsaid(payer) || (typeof payer === 'string' && payer.toLowerCase() === wanted)
}

/** `eip155:*` stands for every chain of that kind. */
function isNamed(given: unknown, caip2: string): boolean {
  return given === caip2 || given === `${caip2.split(':')[0]}:*`
}
