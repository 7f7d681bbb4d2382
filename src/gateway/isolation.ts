import type { Request } from '../http/exchange.js'
import { takesPages } from '../http/small-answer.js'
import { answerText } from '../serving/exchange-answers.js'
import type { Exchange } from '../serving/request-exchange.js'
import type { RequestLog } from '../serving/request-log.js'

/** The header lines for an answer with content of this type; `type` is written by strangers. */
export function isolationLines({ origin }: Exchange, type: string): string {
  // Browsers show no PDF in a sandbox, and their viewers isolate its scripts. A type with parameters is not trusted: browsers
  // may read it as a list whose last type counts.
  return type === 'application/pdf' ? origin.varies : origin.sandboxed
}

/** Refuses scripts of service workers on a shared origin, because one could answer for every address there. True: refused. */
export function refusesWorker(requestLog: RequestLog, exchange: Exchange): boolean {
  if (!exchange.origin.isShared || exchange.request.header('service-worker') === undefined) return false
  const text =
    'Service workers are for hosts of their own: ask for this content by its own host, or by a name'
  answerText(
    requestLog,
    exchange,
    { status: 403, text, lines: '\r\nCache-Control: no-store' },
    { fault: 'client' },
  )
  return true
}

/**
 * True where a browser requests a document to show (Fetch Metadata; without it, by Accept with HTML first, as older ones).
 * Programs that want bytes are not redirected: other gateways request `/raw`, and many follow no redirect.
 */
export function isNavigation(request: Request): boolean {
  const mode = request.header('sec-fetch-mode')
  if (mode !== undefined) return mode === 'navigate'
  return takesPages(request)
}
