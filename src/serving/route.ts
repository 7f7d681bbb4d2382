import type { Reply, Request } from '../http/exchange.js'
import type { Routed } from '../http/router.js'
import type { Exchange } from './request-exchange.js'

/** A route beside content: info, health, metrics, chain passthrough. */
export interface Route extends Routed {
  readonly family: 'info' | 'other' | 'upload' | 'payment'
  /** On the root hosts their content goes first: this answers only what that does not have. */
  readonly yields?: true
  /** A route for operators: not on the TLS listener, unless they want it there. */
  readonly isForOperators?: true
  /** Lines of answers to OPTIONS, each with CRLF in front. */
  readonly optionLines?: string
  /**
   * Answers. `lines` (request id and CORS) go first into the block of whatever head it sends. Ends the reply exactly once,
   * now or later. A route that answers with content ends the reply of the exchange instead, and finishes it.
   */
  handle(request: Request, reply: Reply, lines: string, exchange: Exchange): void | Promise<void>
}
