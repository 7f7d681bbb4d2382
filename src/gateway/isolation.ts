import type { Request } from '../http/exchange.js'
import { takesPages } from '../http/small-answer.js'
import { answerText, type Flow, type Ledger } from './flow.js'

/**
 * Anybody's content may hold scripts. On an origin of its own (the sandbox host of its id, a name's host) they reach only
 * that content. Elsewhere the origin is shared with this gateway's answers and with all other content: there browsers are
 * told to give each document an opaque origin. Its scripts run, but have no storage, no cookies and no service worker, and
 * read from other addresses only what every page on the web may read. `allow-same-origin` must never be added: it would undo
 * this. Content of the apex was chosen by the operator for the root host, and is sent without the sandbox.
 */
export const sandboxLines =
  '\r\nContent-Security-Policy: sandbox allow-scripts allow-forms allow-popups allow-downloads'

/** The header lines for an answer with content of this type; `type` is written by strangers. */
export function isolationLines({ isShared }: Flow, type: string): string {
  // Browsers show no PDF in a sandbox, and their viewers isolate its scripts. A type with parameters is not trusted: browsers
  // may read it as a list whose last type counts.
  return isShared && type !== 'application/pdf' ? sandboxLines : ''
}

/** Refuses scripts of service workers on a shared origin, because one could answer for every address there. True: refused. */
export function refusesWorker(ledger: Ledger, flow: Flow): boolean {
  if (!flow.isShared || flow.request.header('service-worker') === undefined) return false
  const text =
    'Service workers are for hosts of their own: ask for this content by its own host, or by a name'
  answerText(ledger, flow, { status: 403, text, lines: '\r\nCache-Control: no-store' }, { fault: 'client' })
  return true
}

/**
 * True where a browser asks for a document to show (Fetch Metadata; without it, as older browsers ask: for HTML first).
 * Programs that want bytes are not redirected: other gateways ask `/raw`, and many follow no redirect.
 */
export function isNavigation(request: Request): boolean {
  const mode = request.header('sec-fetch-mode')
  if (mode !== undefined) return mode === 'navigate'
  return takesPages(request)
}
