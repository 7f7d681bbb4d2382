import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Meters } from '../actor/meter.js'
import type { Reply, Request } from '../http/exchange.js'
import { Router } from '../http/router.js'
import { answerByRoute } from '../serving/answer-by-route.js'
import { openExchange } from '../serving/open-exchange.js'
import { RequestLog } from '../serving/request-log.js'
import type { Route } from '../serving/route.js'
import { gatewayParameters } from './gateway-parameters.js'

export interface ConsoleHandlerParts {
  /** Routes of the console: the page, and what it requests. */
  readonly routes: readonly Route[]
  /** Answers HEAD for content, as on the public port. */
  readonly content: (request: Request, reply: Reply) => void
  readonly meters: Meters
  readonly log: Log
  readonly clock: Clock
}

/**
 * The handler of the console's port. It serves no content, so that no script of others shares its origin, and no answer
 * allows other origins to read it. The console looks up content by HEAD.
 */
export function consoleHandler(parts: ConsoleHandlerParts): (request: Request, reply: Reply) => void {
  const { routes, content, meters, log, clock } = parts
  const requestLog = new RequestLog(meters, log, clock)
  const router = new Router(routes, gatewayParameters)
  return (request, reply) => {
    const route = router.find(request.path)
    if (route === undefined && request.method === 'HEAD') {
      content(request, reply)
      return
    }
    const exchange = openExchange(requestLog, request, reply, 'info', 'X-Request-Id: ')
    answerByRoute(requestLog, router, exchange, route)
  }
}
