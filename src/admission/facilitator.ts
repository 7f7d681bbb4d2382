import { errors, Pool } from 'undici'
import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { publicReason } from './settlement-protocol.js'
import type { Usdc } from './usdc.js'

export interface FacilitatorOptions {
  /** http(s), with or without a trailing slash. */
  readonly url: string
  readonly usdc: Usdc
  /** A verification may take so long, and the list of what is supported. */
  readonly verifyMs: number
  /** One attempt to settle; nobody waits for it but the cashier. */
  readonly settleMs: number
  /** Connections at most. */
  readonly connectionsMax: number
}

/** Makes the Authorization value of one request, where the facilitator wants one. */
export type Authorizing = (method: 'GET' | 'POST', url: URL) => string

export type Verified =
  | { readonly said: 'valid' }
  | { readonly said: 'invalid'; readonly reason: string }
  | { readonly said: 'nothing'; readonly why: string }

export type Settled =
  | { readonly said: 'settled'; readonly transaction: string }
  | { readonly said: 'refused'; readonly reason: string }
  /** On its way: to be asked for again. */
  | { readonly said: 'pending' }
  /** It turned us away, or was not reached: surely nothing has moved by this attempt. */
  | { readonly said: 'unasked'; readonly why: string }
  /** No answer, or none that can be believed: the money may have moved. */
  | { readonly said: 'nothing'; readonly why: string }

type Fields = Readonly<Record<string, unknown>>

interface Answer {
  readonly status: number
  readonly body: Fields
}

/** Answers are some hundred bytes; a list of what is supported some thousand. */
const answerMaxBytes = 256 * 1024

/** The connection never came about. */
const unreached = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'])

/** Another program's way to the chain (x402, facilitator interface): everything it says is checked, nothing is forwarded. */
export class Facilitator {
  readonly #pool: Pool
  readonly #base: string
  readonly #origin: string

  constructor(
    private readonly options: FacilitatorOptions,
    private readonly clock: Clock,
    private readonly log: Log,
    private readonly authorizing?: Authorizing,
  ) {
    const url = new URL(options.url)
    this.#origin = url.origin
    this.#base = url.pathname.replace(/\/+$/, '')
    this.#pool = new Pool(url.origin, {
      connections: options.connectionsMax,
      pipelining: 1,
      connect: { timeout: options.verifyMs },
      // The whole exchange is timed below.
      ...{ headersTimeout: 0, bodyTimeout: 0 },
    })
  }

  /** Versions of the protocol in which it settles exact payments on our chain; undefined where it does not answer. */
  async supported(): Promise<(1 | 2)[] | undefined> {
    const answer = await this.#ask('GET', '/supported', undefined, this.options.verifyMs)
    if ('why' in answer || answer.status !== 200 || !Array.isArray(answer.body.kinds)) {
      this.log.warn({ answer: whyOf(answer) }, 'the facilitator does not say what it supports')
      return undefined
    }
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

  /** Would this payment settle? `message` is the JSON body. */
  async verify(message: string, payer: string): Promise<Verified> {
    const answer = await this.#ask('POST', '/verify', message, this.options.verifyMs)
    if ('why' in answer) return { said: 'nothing', why: answer.why }
    const { status, body } = answer
    // Some answer 4xx with the same body; a failure of theirs is never the payer's fault.
    if (status >= 500 || typeof body.isValid !== 'boolean') return { said: 'nothing', why: whyOf(answer) }
    if (!body.isValid) {
      this.log.debug({ payer, reason: clip(body.invalidReason) }, 'the facilitator refused a payment')
      return { said: 'invalid', reason: publicReason(body.invalidReason, 'invalid_payment') }
    }
    if (status !== 200) return { said: 'nothing', why: `valid, with status ${status}` }
    return isPayer(body, payer) ? { said: 'valid' } : { said: 'nothing', why: 'it verified another payer' }
  }

  /** Moves the money. */
  async settle(message: string, payer: string): Promise<Settled> {
    const answer = await this.#ask('POST', '/settle', message, this.options.settleMs)
    if ('why' in answer) return { said: answer.sent ? 'nothing' : 'unasked', why: answer.why }
    const { status, body } = answer
    const { success, errorReason, transaction } = body
    if (typeof success !== 'boolean' || status >= 500) {
      const turnedAway = status >= 400 && status < 500 && status !== 408
      return { said: turnedAway ? 'unasked' : 'nothing', why: whyOf(answer) }
    }
    if (!success) {
      if (errorReason === 'settlement_pending') return { said: 'pending' }
      this.log.debug({ payer, reason: clip(errorReason) }, 'the facilitator did not settle a payment')
      return { said: 'refused', reason: publicReason(errorReason, 'unexpected_settle_error') }
    }
    const named = typeof transaction === 'string' && /^0x[0-9a-fA-F]{64}$/.test(transaction)
    if (status !== 200 || !named || !isPayer(body, payer) || !this.#isOurs(body.network)) {
      return { said: 'nothing', why: 'it settled something else' }
    }
    return { said: 'settled', transaction: transaction.toLowerCase() }
  }

  async close(): Promise<void> {
    await this.#pool.destroy()
  }

  #isOurs(network: unknown): boolean {
    const { network: short, caip2 } = this.options.usdc
    return network === undefined || network === short || network === caip2
  }

  async #ask(
    method: 'GET' | 'POST',
    path: string,
    body: string | undefined,
    limitMs: number,
  ): Promise<Answer | { readonly why: string; readonly sent: boolean }> {
    const late = new AbortController()
    const timer = this.clock.after(limitMs, () => late.abort())
    const url = new URL(this.#base + path, this.#origin)
    try {
      const authorization = this.authorizing?.(method, url)
      const response = await this.#pool.request({
        method,
        path: url.pathname,
        signal: late.signal,
        headers: {
          accept: 'application/json',
          'user-agent': 'sluice',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(authorization === undefined ? {} : { authorization }),
        },
        ...(body === undefined ? {} : { body }),
      })
      return { status: response.statusCode, body: await readBody(response.body) }
    } catch (error) {
      if (!(error instanceof Error)) throw error
      return late.signal.aborted ? { why: `no answer in ${limitMs} ms`, sent: true } : failureOf(error)
    } finally {
      timer.cancel()
    }
  }
}

/** The JSON object of an answer; an empty one where it is none: no field of it can be believed then. */
async function readBody(body: AsyncIterable<Buffer>): Promise<Fields> {
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of body) {
    size += piece.length
    if (size > answerMaxBytes) throw new Error(`an answer of more than ${answerMaxBytes} bytes`)
    pieces.push(piece)
  }
  try {
    const read: unknown = JSON.parse(Buffer.concat(pieces).toString('utf8'))
    return typeof read === 'object' && read !== null ? (read as Fields) : {}
  } catch (error) {
    if (error instanceof SyntaxError) return {}
    throw error
  }
}

function failureOf(error: Error): { why: string; sent: boolean } {
  const code = 'code' in error ? String(error.code) : ''
  return {
    why: code || error.message,
    sent: !(unreached.has(code) || error instanceof errors.ConnectTimeoutError),
  }
}

function whyOf(answer: Answer | { readonly why: string }): string {
  return 'why' in answer
    ? answer.why
    : `status ${answer.status}, fields ${clip(Object.keys(answer.body).join())}`
}

function clip(text: unknown): string {
  return String(text).slice(0, 200)
}

function isPayer({ payer }: Fields, wanted: string): boolean {
  return payer === undefined || (typeof payer === 'string' && payer.toLowerCase() === wanted)
}

/** `eip155:*` stands for every chain of that kind. */
function isNamed(given: unknown, caip2: string): boolean {
  return given === caip2 || given === `${caip2.split(':')[0]}:*`
}
