import { codeOfStatus, errorCodes, type FailureCode } from './error-codes.js'
import type { Reply, Request } from './exchange.js'
import { inHtml, makePage } from './page.js'

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
  /** Of a failure; absent: as the status says. */
  readonly code?: FailureCode
  /** The failure in words, for the page that browsers get instead of JSON. */
  readonly words?: string
}

/**
 * Answers; HEAD gets the same head and no body. `first` is what stands at the beginning of every block. Whatever is no success
 * and says nothing of caching gets `no-store`: caches keep some statuses without being told to (RFC 9110 section 15.1).
 */
export function answerSmall(request: Request, reply: Reply, first: string, answer: SmallAnswer): void {
  const { type, body, lines } = answer.status < 400 ? plain(answer) : toldTo(request, answer)
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
 * A failure in the form for this client: its code in a header line and in an object of JSON, and a page where a browser opens
 * the address. Texts are left as they are, because clients of the network know their words. `Vary: Accept` keeps the two forms
 * apart in caches.
 */
function toldTo(request: Request, answer: SmallAnswer): Whole {
  const { status, code = codeOfStatus(status) } = answer
  if (code === undefined) return plain(answer)
  const whole = plain(answer, code)
  const { type, body } = whole
  const coded = `${whole.lines}\r\nX-Error-Code: ${code}`
  const words = answer.words ?? (type === textType && typeof body === 'string' ? body : undefined)
  if (words === undefined) return { type, lines: coded, body }
  const varying = varyingBy(coded, 'Accept')
  if (!takesPages(request)) return { type, lines: varying, body }
  const page = errorPage(code, status, words, whole.lines)
  return { type: htmlType, lines: varying + page.lines, body: page.html }
}

/**
 * The code as one more member of an object that tells an `error` in words: clients read members by name, so that it changes
 * nothing for them. Other values are left as they are: lists, and objects that have a `code` of their own.
 */
function withCode(value: unknown, code: FailureCode): unknown {
  const tells = typeof value === 'object' && value !== null && 'error' in value && !('code' in value)
  return tells && typeof value.error === 'string' ? { ...value, code } : value
}

/** A browser that opens a page names HTML first (Fetch standard, "navigate"); programs and scripts of pages do not. */
export function takesPages(request: Request): boolean {
  return /^text\/html/i.test(request.header('accept') ?? '')
}

/** `lines`: header lines of the answer. Browsers do not show Retry-After (RFC 9110 section 10.2.3), so the page says it. */
function errorPage(
  code: FailureCode,
  status: number,
  words: string,
  lines: string,
): { html: string; lines: string } {
  const { title, hint } = errorCodes[code]
  const seconds = /\r\nRetry-After: (\d+)/i.exec(lines)?.[1]
  const again = seconds === undefined ? '' : `<dt>Try again</dt><dd>${inTime(Number(seconds))}</dd>`
  const isTitle = words.toLowerCase() === title.toLowerCase()
  return makePage(
    title,
    `<p class="lead">${isTitle ? '' : `${inHtml(words)}<br>`}${marked(hint)}</p>
<section><dl><dt>Code</dt><dd><code>${code}</code></dd>${again}</dl></section>`,
    { over: `<p class="status">${status}</p>` },
  )
}

/** Text for HTML in which words between backticks are code. */
function marked(text: string): string {
  return inHtml(text).replace(/`([^`]+)`/g, '<code>$1</code>')
}

/** A wait for people, never shorter than it is. */
function inTime(seconds: number): string {
  const [count, unit] =
    seconds < 120
      ? [seconds, 'second']
      : seconds < 7200
        ? [Math.ceil(seconds / 60), 'minute']
        : [Math.ceil(seconds / 3600), 'hour']
  return `in ${count} ${unit}${count === 1 ? '' : 's'}`
}
