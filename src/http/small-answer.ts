import { codeOfStatus, errorCodes, type FailureCode } from './error-codes.js'
import type { Reply, Request } from './exchange.js'
import { inHtml, makePage } from './page.js'

export const jsonType = 'application/json; charset=utf-8'
export const textType = 'text/plain; charset=utf-8'
export const htmlType = 'text/html; charset=utf-8'
/** A header line. */
export const noStore = '\r\nCache-Control: no-store'

/** An answer that is whole in memory. `lines` are header lines, each with CRLF in front. */
export interface SmallAnswer {
  readonly status: number
  readonly type: string
  readonly lines?: string
  readonly body: string | Uint8Array
  /** Words of the status line; absent: the usual ones. */
  readonly reason?: string
  /** Of a failure; absent: as the status says. */
  readonly code?: FailureCode
  /** The failure in words, for the page that browsers get instead of JSON. */
  readonly words?: string
}

/** Answers; HEAD gets the same head and no body. `first` is what stands at the beginning of every block. */
export function answerSmall(request: Request, reply: Reply, first: string, answer: SmallAnswer): void {
  const { status, type, lines = '', body } = answer.status < 400 ? answer : toldTo(request, answer)
  const { reason } = answer
  const words = reason === undefined ? {} : { reason }
  const head = { status, block: `${first}\r\nContent-Type: ${type}${lines}`, ...words }
  if (request.method === 'HEAD') reply.endEmpty(head, Buffer.byteLength(body))
  else reply.end(head, body)
}

/**
 * A failure in the form for this client: its code in a header line, and a page where a browser opens the address. Texts are
 * left as they are, because clients of the network know their words. `Vary: Accept` keeps the two forms apart in caches.
 */
function toldTo(request: Request, answer: SmallAnswer): SmallAnswer {
  const { status, type, lines = '', code = codeOfStatus(status) } = answer
  if (code === undefined) return answer
  const body =
    type === jsonType && typeof answer.body === 'string' ? withCode(answer.body, code) : answer.body
  const coded = `${lines}\r\nX-Error-Code: ${code}`
  const words = answer.words ?? (type === textType && typeof body === 'string' ? body : undefined)
  if (words === undefined) return { status, type, lines: coded, body }
  const varying = `${coded}\r\nVary: Accept`
  if (!takesPages(request)) return { status, type, lines: varying, body }
  const page = errorPage(code, status, words)
  return { status, type: htmlType, lines: varying + page.lines, body: page.html }
}

/**
 * The code as a member of a JSON object whose first member is `error`: clients read members by name, so that one more changes
 * nothing for them. Other JSON is left as it is: lists, and `errors` of GraphQL, whose members are fixed.
 */
function withCode(body: string, code: FailureCode): string {
  if (!body.startsWith('{"error":"') || body.includes('"code":')) return body
  const end = body.lastIndexOf('}')
  return `${body.slice(0, end)},"code":"${code}"${body.slice(end)}`
}

/** A browser that opens a page names HTML first (Fetch standard, "navigate"); programs and scripts of pages do not. */
export function takesPages(request: Request): boolean {
  return request.header('accept')?.startsWith('text/html') === true
}

function errorPage(code: FailureCode, status: number, words: string): { html: string; lines: string } {
  const { title, hint } = errorCodes[code]
  return makePage(
    title,
    `<section><p>${inHtml(words)}</p><p class="quiet">${inHtml(hint)}</p></section>
<section><dl><dt>Status</dt><dd>${status}</dd><dt>Code</dt><dd><code>${code}</code></dd></dl></section>`,
  )
}
