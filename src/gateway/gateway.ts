import type { Reply, Request } from '../http/exchange.js'
import type { GatewayParts } from './parts.js'

/** What answers requests on one edge thread. `close` gives back every mapping that prepared entries hold. */
export interface Gateway {
  handle(request: Request, reply: Reply): void
  close(): void
}

/** Builds the gateway of one edge thread. */
export function createGateway(_parts: GatewayParts): Gateway {
  throw new Error('not built yet')
}
