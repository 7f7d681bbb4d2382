import type { Clock } from '../actor/clock.js'
import { expected } from '../format/bug.js'
import { textOfBytes } from '../format/bytes.js'
import { Gathered } from '../format/gathered.js'
import { Upstream } from '../http/upstream.js'

/** Makes the Authorization value of one request, where the peer wants one. */
export type Authorizing = (method: 'GET' | 'POST', url: URL) => Promise<string>

/** An answer that was read to its end. `body` has no fields where it was no JSON object. */
export interface Read {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

/** No answer, or a broken one. `sent`: the request may have arrived. */
export interface Unread {
  readonly why: string
  readonly sent: boolean
}

/** Most answers are some hundred bytes; lists some thousand. */
const usualMaxBytes = 256 * 1024

/** Errors after which certainly no request was sent. */
const unreached = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])

/**
 * A client for a JSON service of others over HTTP. Each exchange is bounded in time and size; redirects are not
 * followed.
 */
export class JsonPeer {
  readonly #upstream: Upstream
  readonly #base: string
  readonly #origin: string
  readonly #query: string
  readonly #answerMaxBytes: number

  /** `url`: http(s), with or without a trailing slash; its query, such as a key, goes with each request. */
  constructor(
    {
      url: address,
      connectionsMax,
      answerMaxBytes = usualMaxBytes,
    }: { readonly url: string; readonly connectionsMax: number; readonly answerMaxBytes?: number },
    private readonly clock: Clock,
    private readonly authorizing?: Authorizing,
  ) {
    const url = new URL(address)
    this.#origin = url.origin
    this.#base = url.pathname.replace(/\/+$/, '')
    this.#query = url.search.slice(1)
    this.#answerMaxBytes = answerMaxBytes
    // No timeouts here: `ask` has one for the whole exchange.
    const times = { headersTimeout: 0, bodyTimeout: 0 }
    this.#upstream = new Upstream({ connections: connectionsMax, pipelining: 1, ...times })
  }

  /** Posts `body`, or sends a GET where there is none. Rejects for bugs only. */
  async ask(path: string, body: string | undefined, limitMs: number): Promise<Read | Unread> {
    const method = body === undefined ? 'GET' : 'POST'
    const late = new AbortController()
    const timer = this.clock.after(limitMs, () => late.abort())
    const url = new URL(this.#base + path || '/', this.#origin)
    url.search = [url.search.slice(1), this.#query].filter((part) => part !== '').join('&')
    try {
      const authorization = await this.authorizing?.(method, url)
      const response = await this.#upstream.request({
        origin: this.#origin,
        method,
        path: url.pathname + url.search,
        signal: late.signal,
        headers: {
          accept: 'application/json',
          'user-agent': 'sluice',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(authorization === undefined ? {} : { authorization }),
        },
        ...(body === undefined ? {} : { body }),
      })
      return { status: response.statusCode, body: await readBody(response.body, this.#answerMaxBytes) }
    } catch (error) {
      const failed = expected(error)
      return late.signal.aborted ? { why: `no answer in ${limitMs} ms`, sent: true } : failureOf(failed)
    } finally {
      timer.cancel()
    }
  }

  async close(): Promise<void> {
    await this.#upstream.destroy()
  }
}

async function readBody(body: AsyncIterable<Buffer>, answerMaxBytes: number): Promise<Read['body']> {
  const gathered = new Gathered()
  for await (const piece of body) {
    if (gathered.sizeBytes + piece.length > answerMaxBytes)
      throw new Error(`an answer of more than ${answerMaxBytes} bytes`)
    gathered.add(piece)
  }
  try {
    const read: unknown = JSON.parse(textOfBytes(gathered.bytes()))
    return typeof read === 'object' && read !== null ? (read as Read['body']) : {}
  } catch (error) {
    if (error instanceof SyntaxError) return {}
    throw error
  }
}

function failureOf(error: Error): Unread {
  const code = 'code' in error ? String(error.code) : ''
  const never = unreached.has(code)
  return { why: code || error.message, sent: !never }
}
