import { codeOfStatus, type FailureCode } from './error-codes.js'
import { errorPage } from './error-page.js'
import type { Reply, Request } from './exchange.js'

export const jsonType = 'application/json; charset=utf-8'
export const textType = 'text/plain; charset=utf-8'
export const htmlType = 'text/html; charset=utf-8'
/** A header line. */
export const noStore = '\r\nCache-Control: no-store'
/** A header line, for what a service says of itself. */
export const publicShortly = '\r\nCache-Control: public, max-age=30'

/** An answer that is whole in memory: bytes of a media type, or a value that is written as JSON. */
export type SmallAnswer = About & (Written | ValueAsJson)

interface Written {
  readonly type: string
  readonly body: string | Uint8Array
}

interface ValueAsJson {
  readonly json: unknown
  /** Absent: plain JSON. */
  readonly type?: string
}

/** `lines` are header lines, each with CRLF in front. */
interface About {
  readonly status: number
  readonly lines?: string
  /** Words of the status line; absent: the usual ones. */
  readonly reason?: string
  /** The code of a failure; absent: as the status says. */
  readonly code?: FailureCode
  /** The failure in words, for the page that browsers get; absent: a body of plain text, or `error` of a JSON object. */
  readonly words?: string
}

/**
 * Answers; HEAD gets the same head and no body. `first` begins every block. A failure without Cache-Control gets `no-store`,
 * because caches keep some statuses by default (RFC 9110 section 15.1).
 */
export function answerSmall(request: Request, reply: Reply, first: string, answer: SmallAnswer): void {
  const { type, body, lines } = answer.status < 400 ? plain(answer) : shaped(request, first, answer)
  const { status, reason } = answer
  const words = reason === undefined ? {} : { reason }
  const caching = status < 300 || saysCaching(lines) ? '' : noStore
  // A 304 has no body, and what it says takes the place of what a cache keeps (RFC 9111 section 3.2).
  const typed = status === 304 ? '' : `\r\nContent-Type: ${type}`
  const head = { status, block: `${first}${typed}${lines}${caching}`, ...words }
  if (request.method === 'HEAD') reply.endEmpty(head, Buffer.byteLength(body))
  else reply.end(head, body)
}

/** Whether these header lines say how long the answer may be kept. */
export function saysCaching(lines: string): boolean {
  return /^cache-control:/im.test(lines)
}

/**
 * Header lines of an answer that depends on one more request header (RFC 9110 section 12.5.5). It joins the Vary line where there
 * is one, because some caches read one such line only.
 */
export function varyingBy(lines: string, header: string): string {
  const known = /\r\nVary: [^\r]*/i.exec(lines)?.[0]
  return known === undefined ? `${lines}\r\nVary: ${header}` : lines.replace(known, `${known}, ${header}`)
}

type Whole = Written & { readonly lines: string }

function plain(answer: SmallAnswer, code?: FailureCode): Whole {
  const { lines = '' } = answer
  if (!('json' in answer)) return { type: answer.type, body: answer.body, lines }
  const value = code === undefined ? answer.json : withCode(answer.json, code)
  return { type: answer.type ?? jsonType, body: JSON.stringify(value), lines }
}

/**
 * A failure in the form for this client. Its code stands in a header line and in an object of JSON. A browser that opens the
 * address gets a page. Texts are left as they are, because clients of the network know their words. `Vary: Accept` keeps the two
 * forms apart in caches.
 */
function shaped(request: Request, first: string, answer: SmallAnswer): Whole {
  const { status, code = codeOfStatus(status) } = answer
  if (code === undefined) return plain(answer)
  const whole = plain(answer, code)
  const { type, body } = whole
  const coded = `${whole.lines}\r\nX-Error-Code: ${code}`
  const words = answer.words ?? wordsOf(answer)
  if (words === undefined) return { type, lines: coded, body }
  const varying = varyingBy(coded, 'Accept')
  if (!takesPages(request)) return { type, lines: varying, body }
  const requestId = /\r\nX-Request-Id: ([^\r]*)/i.exec(first)?.[1]
  const home = request.home?.(request) ?? { href: '/', hasSearch: false }
  const page = errorPage({ code, status, words, lines: whole.lines, requestId, home })
  return { type: htmlType, lines: varying + page.lines, body: page.html }
}

/** The failure in words. Undefined for an offer of x402, which wallets read, and for what has a page of its own. */
function wordsOf(answer: SmallAnswer): string | undefined {
  if (!('json' in answer))
    return answer.type === textType && typeof answer.body === 'string' ? answer.body : undefined
  const { json, status } = answer
  const tells = typeof json === 'object' && json !== null && 'error' in json
  return tells && status !== 402 && typeof json.error === 'string' ? json.error : undefined
}

/**
 * Adds the code as a member to an object with an `error`. Clients read members by name, so it changes nothing for them. Other
 * values are left as they are: lists, and objects that have a `code` of their own.
 */
function withCode(value: unknown, code: FailureCode): unknown {
  const tells = typeof value === 'object' && value !== null && 'error' in value && !('code' in value)
  return tells && typeof value.error === 'string' ? { ...value, code } : value
}

/** A browser that opens a page names HTML first (Fetch standard, "navigate"); programs and scripts of pages do not. */
export function takesPages(request: Request): boolean {
  return /^text\/html/i.test(request.header('accept') ?? '')
}
