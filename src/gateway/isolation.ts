import type { Request } from '../http/exchange.js'
import { takesPages } from '../http/small-answer.js'
import { answerText, type Flow, type Ledger } from './flow.js'

/**
 * Content of strangers may hold scripts. Where it has an origin of its own (the sandbox host of its id, a name's host) they
 * reach nothing but themselves. Elsewhere its origin is that of our own answers and of everybody else's content: there browsers
 * are told to give each document an origin that nobody else has. Its scripts run; it has no storage, no cookies and no service
 * worker, and reads of other addresses what any page on the web may read. Never `allow-same-origin`: it would undo all of this.
 * Content of the apex is the operator's own choice for his root host, and is served as it is.
 */
export const sandboxLines =
  '\r\nContent-Security-Policy: sandbox allow-scripts allow-forms allow-popups allow-downloads'

/** The header lines for an answer with content of this type; `type` is written by strangers. */
export function isolationLines({ isShared }: Flow, type: string): string {
  // The viewers of browsers show no PDF in a sandbox, and run its scripts in a place of their own. With parameters the line could
  // be read as a list with another type at its end.
  return isShared && type !== 'application/pdf' ? sandboxLines : ''
}

/** A service worker would answer for every address of its origin. True: it was refused. */
export function refusesWorker(ledger: Ledger, flow: Flow): boolean {
  if (!flow.isShared || flow.request.header('service-worker') === undefined) return false
  const text =
    'Service workers are for hosts of their own: ask for this content by its own host, or by a name'
  answerText(ledger, flow, { status: 403, text, lines: '\r\nCache-Control: no-store' }, { fault: 'client' })
  return true
}

/**
 * True where a browser asks for a document to show (Fetch Metadata; without it, as older browsers ask: for HTML first). Programs
 * that want bytes are not sent elsewhere: other gateways ask `/raw`, and many of them follow no redirect.
 */
export function isNavigation(request: Request): boolean {
  const mode = request.header('sec-fetch-mode')
  if (mode !== undefined) return mode === 'navigate'
  return takesPages(request)
}
