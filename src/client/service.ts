import { ClientError, type ErrorCode } from './errors.js'
import { streamPieces } from './payload.js'
import { abortedError, Patience, throwIfAborted, waited } from './timing.js'

export type FetchLike = (url: string, init?: RequestInit) => Promise<Response>

/** How requests are repeated: only after no answer, 429 and 5xx, and always with the same bytes and headers. */
export interface RetryOptions {
  readonly tries?: number
  /** Pause before the second try; doubled for each further one, at most 30 s. */
  readonly delayMs?: number
  /** How long one answer may take, to its last byte: 5 minutes by default, and a second more for each 32 KiB that are sent. */
  readonly answerMs?: number
}

export interface ServiceRequest {
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT'
  /** From the slash on. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array<ArrayBuffer> | string
  readonly signal?: AbortSignal | undefined
  /** Statuses that are answers and no errors; 200 and 202 by default. */
  readonly accepted?: readonly number[]
}

export interface ServiceAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The JSON of the body; undefined where the body is something else. */
  readonly json: unknown
}

/** Answers are small: a service that sends more is not one. */
const answerBytesMax = 64 * 1024 * 1024
/** JSON of so many characters is parsed as it is: whatever it has in it takes some 10 MB at most. */
const briefMax = 100_000
/** Values in JSON of services and indexes. 1,000 items with 128 tags each have some 400,000. */
export const answerBounds = { values: 1_000_000 }
const delayMaxMs = 30_000
const answerUsualMs = 300_000
/** The slowest line that uploads are made for, in bytes a millisecond. */
const sentBytesPerMs = 32

/** One service at one address. */
export class RemoteService {
  readonly #url: string
  readonly #fetch: FetchLike
  readonly #retry: Required<RetryOptions>

  constructor(url: string, fetcher: FetchLike, retry: RetryOptions = {}) {
    this.#url = url.replace(/\/+$/, '')
    this.#fetch = fetcher
    this.#retry = {
      tries: retry.tries ?? 5,
      delayMs: retry.delayMs ?? 500,
      answerMs: retry.answerMs ?? answerUsualMs,
    }
  }

  get url(): string {
    return this.#url
  }

  /** Asks until there is an answer that another try would not change. Rejects with a ClientError. */
  async ask(request: ServiceRequest): Promise<ServiceAnswer> {
    for (let tried = 1; ; tried++) {
      const answer = await this.#once(request)
      const again = answer instanceof ClientError || answer.status === 429 || answer.status >= 500
      if (!again || tried >= this.#retry.tries) return this.#judged(request, answer)
      await waited(this.#delay(tried, answer), request.signal)
    }
  }

  #judged(request: ServiceRequest, answer: ServiceAnswer | ClientError): ServiceAnswer {
    if (answer instanceof ClientError) throw answer
    if ((request.accepted ?? [200, 202]).includes(answer.status)) return answer
    throw errorOf(this.#url, answer)
  }

  #delay(tried: number, answer: ServiceAnswer | ClientError): number {
    const retryAfter = answer instanceof ClientError ? Number.NaN : Number(answer.headers.get('retry-after'))
    const own = Math.min(this.#retry.delayMs * 2 ** (tried - 1), delayMaxMs)
    return retryAfter > 0 ? Math.min(retryAfter * 1000, delayMaxMs) : own
  }

  async #once({
    method = 'GET',
    path,
    headers,
    body,
    signal,
  }: ServiceRequest): Promise<ServiceAnswer | ClientError> {
    throwIfAborted(signal)
    // What is signed or paid is for this service alone: it is not carried on to an address that the caller did not name.
    const redirect =
      body === undefined && headers === undefined && (method === 'GET' || method === 'HEAD')
        ? 'follow'
        : 'manual'
    const patience = new Patience(this.#retry.answerMs + (body?.length ?? 0) / sentBytesPerMs, signal)
    const init: RequestInit = { method, redirect, headers: { ...headers }, signal: patience.signal }
    if (body !== undefined) init.body = body
    try {
      const response = await this.#fetch(this.#url + path, init)
      return await readAnswer(response)
    } catch (error) {
      if (signal?.aborted === true) throw abortedError(signal)
      if (error instanceof ClientError) return error
      const why = error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error)
      const message = `${this.#url} did not answer: ${why}`
      return new ClientError('unavailable', message, 'try again later, or another address', { cause: error })
    } finally {
      patience.end()
    }
  }
}

async function readAnswer(response: Response): Promise<ServiceAnswer> {
  const { status, headers } = response
  const text = await boundedText(response)
  const isJson = headers.get('content-type')?.includes('json') === true
  return { status, headers, text, json: isJson ? await boundedJson(text) : undefined }
}

/** The body of an answer of at most 64 MiB. Throws `malformed-answer` where it is longer. */
async function boundedText({ headers, body }: Response): Promise<string> {
  // An answer to HEAD has the length of what it has not.
  if (body === null) return ''
  const decoder = new TextDecoder()
  let text = ''
  let came = Number(headers.get('content-length'))
  if (came <= answerBytesMax) came = 0
  else await body.cancel()
  if (came === 0)
    for await (const piece of streamPieces(body as ReadableStream<Uint8Array>)) {
      came += piece.length
      if (came > answerBytesMax) break
      text += decoder.decode(piece, { stream: true })
    }
  if (came <= answerBytesMax) return text + decoder.decode()
  const advice = 'check the address of the service'
  throw new ClientError('malformed-answer', 'an answer of more than 64 MiB', advice)
}

/** The value that an answer is JSON of; undefined where it is none, or has too many values. What counts them is rarely needed. */
async function boundedJson(text: string): Promise<unknown> {
  if (text.length > briefMax) return (await import('../format/json.js')).parsedJson(text, answerBounds)
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** The words of a refusal: the JSON's error or message, the text, or nothing for a page of HTML. */
function wordsOf({ json, text, headers, status }: ServiceAnswer): string {
  const { error, message } = (json ?? {}) as { error?: unknown; message?: unknown }
  if (typeof error === 'string' && error !== '') return error
  if (typeof message === 'string') return message
  if (headers.get('content-type')?.includes('html') === true || text === '') return `status ${status}`
  return text.slice(0, 300)
}

/** Whether a 402 means that the free allowance is used up; any other is about credits or about USDC. */
export function isFreeTierSpent({ headers, json }: ServiceAnswer): boolean {
  const { code } = (json ?? {}) as { code?: unknown }
  return headers.get('x-free-tier-exhausted') === 'true' || code === 'FREE_TIER_EXHAUSTED'
}

/** Whether a 402 carries an offer to be paid in USDC. */
export function hasOffer({ headers, json }: ServiceAnswer): boolean {
  return (
    headers.has('payment-required') || Array.isArray((json as { accepts?: unknown } | undefined)?.accepts)
  )
}

const topUp = 'top up credits, or choose a funding mode that pays just in time'

function kindOf(answer: ServiceAnswer): readonly [ErrorCode, string] {
  switch (answer.status) {
    case 402:
      if (isFreeTierSpent(answer)) return ['free-tier-exhausted', topUp]
      if (hasOffer(answer)) return ['payment-required', 'fund by x402, or use the normal upload path']
      return ['insufficient-credits', topUp]
    case 401:
    case 403:
      return ['forbidden', 'the service turns this wallet or content away: read its reason']
    case 404:
      return [
        'not-found',
        'check the address and the id; what was just uploaded may take a while to be found',
      ]
    case 413:
      return ['too-large', 'split the content into smaller items and tie them with a manifest']
    case 429:
      return ['rate-limited', 'wait, and ask less often']
    default:
      return answer.status >= 500
        ? ['unavailable', 'try again later']
        : ['rejected', 'change the request: repeating it gives the same answer']
  }
}

/** Browsers do not show the target of a redirect: there the status is 0. */
function isRedirect({ status }: ServiceAnswer): boolean {
  return status === 0 || [301, 302, 303, 307, 308].includes(status)
}

/** The error that an answer stands for. */
export function errorOf(url: string, answer: ServiceAnswer): ClientError {
  if (isRedirect(answer)) {
    const place = answer.headers.get('location') ?? 'another address'
    const advice = 'nothing was sent there: give that address to the client if you trust it'
    return new ClientError('rejected', `${url} sends the request on to ${place}`, advice, {
      status: answer.status,
    })
  }
  const [code, advice] = kindOf(answer)
  return new ClientError(code, `${url} answered ${answer.status}: ${wordsOf(answer)}`, advice, {
    status: answer.status,
  })
}

/** The fields of a JSON object. Throws `malformed-answer` for anything else, a page of HTML for example. */
export function fieldsOfAnswer(answer: ServiceAnswer, what: string): Readonly<Record<string, unknown>> {
  const { json } = answer
  if (typeof json === 'object' && json !== null && !Array.isArray(json))
    return json as Record<string, unknown>
  const found = `${what}: no JSON object, but ${answer.headers.get('content-type') ?? 'nothing'}`
  throw new ClientError('malformed-answer', found, 'check the address of the service', {
    status: answer.status,
  })
}
