import { Gathered } from '../../format/gathered.js'
import { parsedJson } from '../../format/json.js'
import { isUnsureAbsence } from '../../format/unsure-absence.js'
import { ClientError, type ErrorCode } from '../errors.js'
import { isHashNative } from '../hash.js'
import { usualFetch } from '../platform-fetch.js'
import type { FetchLike } from '../service.js'
import { abortedError, Patience, throwIfAborted } from '../timing.js'
import type { DirectLines } from './direct-line.js'
import { fetchedWhole, type WholeAnswer } from './held-body.js'
import { isTooSlow } from './pace.js'

const patienceUsualMs = 30_000

/** A block has the ids of 1,000 transactions at most, and an item 128 tags. */
const jsonValuesMax = 100_000

/** What became of one gateway: an answer that was not believed, or none. */
export interface Finding {
  readonly gateway: string
  readonly error: ClientError
}

export interface GatewayOptions {
  readonly gatewayUrls: readonly string[]
  /** The platform's own by default. */
  readonly fetch?: FetchLike | undefined
  /** How long a gateway may send nothing before another one is tried; 30 s by default. */
  readonly patienceMs?: number | undefined
  /** Called for each gateway that failed or sent false bytes, while another one is tried. */
  readonly onFinding?: ((finding: Finding) => void) | undefined
}

const loopback = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/

/**
 * Who answers at an address: its host, whatever else the address has. One host named in two ways is one witness. Ports count on
 * this machine alone, where several gateways are tried side by side. An address that cannot be read is its own.
 */
function hostOf(text: string): string {
  if (!URL.canParse(text)) return text
  const { hostname, host } = new URL(text)
  const name = hostname.replace(/\.$/, '')
  return loopback.test(name) ? host : name
}

const plainUrl = (url: string): string => url.replace(/\/+$/, '')

/** The first address of each host. */
function ofDifferentHosts(urls: readonly string[]): string[] {
  const found = new Map<string, string>()
  for (const url of urls) if (!found.has(hostOf(url))) found.set(hostOf(url), url)
  return [...found.values()]
}

/** Several gateways: the first answer that can be proven is used, and failures of the others are reported. */
export class Gateways {
  readonly #patience = new WeakMap<Response, Patience>()
  readonly #patienceMs: number
  readonly #fetch: FetchLike
  #lines: Promise<DirectLines> | undefined
  /** In the order in which they are tried, without slashes at their ends. */
  readonly urls: readonly string[]
  /** Those of different hosts, so that none has two votes. */
  readonly witnesses: readonly string[]

  constructor(private readonly options: GatewayOptions) {
    this.urls = [...new Set(options.gatewayUrls.map(plainUrl))]
    this.witnesses = ofDifferentHosts(this.urls)
    this.#patienceMs = options.patienceMs ?? patienceUsualMs
    this.#fetch = options.fetch ?? ((url, init) => fetch(url, init))
    if (options.gatewayUrls.length === 0)
      throw new ClientError('invalid-input', 'no gateways', 'give at least one address of a gateway')
  }

  /** Calls `ask` with one gateway after the other until it resolves. Rejects with the worst error: `untrue` before all others. */
  async first<Result>(
    ask: (gateway: string) => Promise<Result>,
    signal?: AbortSignal,
  ): Promise<Result & { readonly gateway: string }> {
    const errors: ClientError[] = []
    for (const gateway of this.urls) {
      try {
        return { ...(await ask(gateway)), gateway }
      } catch (error) {
        if (signal?.aborted === true) throw abortedError(signal)
        if (!(error instanceof ClientError)) throw error
        errors.push(error)
        // What is too long for the caller is no fault of the gateway.
        if (error.code !== 'too-large') this.options.onFinding?.({ gateway, error })
      }
    }
    throw (
      errors.find(({ code }) => code === 'untrue') ??
      errors.find(({ code }) => code !== 'not-found') ??
      errors[0]
    )
  }

  /** One request. Rejects for every status that is not in `accepted`; `all`: each status is an answer. */
  async get(
    url: string,
    headers: Readonly<Record<string, string>> = {},
    signal?: AbortSignal,
    accepted: readonly number[] | 'all' = [200],
    post?: string,
  ): Promise<Response> {
    throwIfAborted(signal)
    const patience = new Patience(this.#patienceMs, signal)
    const init: RequestInit = { headers: { ...headers }, signal: patience.signal }
    if (post !== undefined) Object.assign(init, { method: 'POST', body: post })
    let response: Response
    try {
      response = await this.#fetch(url, init)
      this.#patience.set(response, patience)
    } catch (error) {
      if (signal?.aborted === true) throw abortedError(signal)
      if (!(error instanceof Error)) throw error
      throw new ClientError('unavailable', `${url} did not answer`, 'try again later', { cause: error })
    } finally {
      patience.end()
    }
    if (accepted === 'all' || accepted.includes(response.status)) return response
    await response.body?.cancel()
    throw refused(url, response)
  }

  /** A request for a whole content of at most `bytesMax` bytes. Rejects for every status but 200. */
  async whole(url: string, bytesMax: number, signal?: AbortSignal): Promise<WholeAnswer> {
    throwIfAborted(signal)
    const lines = await this.#direct()
    const answer = await lines?.ask({ url, bytesMax, patienceMs: this.#patienceMs, signal })
    if (answer === undefined) {
      const response = await this.get(url, {}, signal)
      return fetchedWhole(response, bytesMax, (limit) => this.pieces(response, limit, signal))
    }
    if (answer.status === 200) return answer
    await answer.drop()
    throw refused(url, answer)
  }

  /** What is faster than `fetch`, where that is the platform's own and has something faster beside it. */
  #direct(): Promise<DirectLines> | undefined {
    if (this.options.fetch !== undefined || !isHashNative) return undefined
    this.#lines ??= import('./direct-line.js').then(({ DirectLines }) => new DirectLines(usualFetch))
    return this.#lines
  }

  /** A body of at most `limit` bytes, in pieces. What is longer is not read on. */
  async *pieces(response: Response, limit: number, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    const length = Number(response.headers.get('content-length'))
    if (length > limit) {
      await response.body?.cancel()
      throw untrue(`${response.url} sends ${length} bytes, ${limit} were expected at most`)
    }
    if (response.body === null) return
    let came = 0
    const patience = this.#patience.get(response)
    patience?.begin()
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    try {
      for (;;) {
        patience?.wait()
        const { done, value } = await reader.read()
        patience?.came()
        if (done) return
        came += value.length
        // Silence is not the only way to keep a reader waiting.
        if (isTooSlow(patience, this.#patienceMs, came))
          throw new ClientError('unavailable', `${response.url} is too slow`, 'try again, or another gateway')
        if (came > limit) throw untrue(`${response.url} sends more than ${limit} bytes`)
        yield value
      }
    } catch (error) {
      if (signal?.aborted === true) throw abortedError(signal)
      if (error instanceof ClientError || !(error instanceof Error)) throw error
      throw new ClientError('unavailable', `${response.url} broke off`, 'try again', { cause: error })
    } finally {
      patience?.end()
      // Where the reader left early. A stream that broke has nothing to cancel, and rejects with what was thrown already.
      reader.cancel().catch((error) => error)
    }
  }

  /** The same at once. */
  async bytes(response: Response, limit: number, signal?: AbortSignal): Promise<Uint8Array> {
    const gathered = new Gathered()
    for await (const piece of this.pieces(response, limit, signal)) gathered.add(piece)
    return gathered.bytes()
  }

  /** The JSON object of a small answer of at most `limit` bytes and 100,000 values. */
  async json(
    response: Response,
    signal?: AbortSignal,
    limit = 16 * 1024 * 1024,
  ): Promise<Readonly<Record<string, unknown>>> {
    const text = new TextDecoder().decode(await this.bytes(response, limit, signal))
    const json = parsedJson(text, { values: jsonValuesMax })
    if (typeof json === 'object' && json !== null) return json as Record<string, unknown>
    throw new ClientError(
      'malformed-answer',
      `${response.url} sends no JSON, or too much`,
      'check the address of the gateway',
    )
  }
}

/** Not known for now is no absence: the next request may get the content, as after 503. */
function refused(url: string, { status, headers }: Pick<Response, 'status' | 'headers'>): ClientError {
  const codes = new Map<number, ErrorCode>([
    [402, 'payment-required'],
    [404, 'not-found'],
    [429, 'rate-limited'],
  ])
  const isUnsure = isUnsureAbsence(status, headers.get('retry-after'))
  const code = (isUnsure ? undefined : codes.get(status)) ?? 'unavailable'
  return new ClientError(code, `${url} answered ${status}`, 'try again later, or another gateway', { status })
}

/** An answer that proves itself wrong. */
export function untrue(message: string): ClientError {
  return new ClientError(
    'untrue',
    message,
    'do not use this gateway for what matters; another one was or can be used',
  )
}

/** A header in either of the vocabularies that gateways speak. */
export function gatewayHeader(headers: Headers, suffix: string): string | undefined {
  return headers.get(`x-gateway-${suffix}`) ?? headers.get(`x-ar-io-${suffix}`) ?? undefined
}

/** The same of headers about chain facts. */
export function chainHeader(headers: Headers, suffix: string): string | undefined {
  return headers.get(`x-chain-${suffix}`) ?? headers.get(`x-arweave-${suffix}`) ?? undefined
}
