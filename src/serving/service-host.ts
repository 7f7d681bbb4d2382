import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Meters } from '../actor/meter.js'
import type { Reply, Request } from '../http/exchange.js'
import type { DescribedService } from '../http/openapi.js'
import { Router } from '../http/router.js'
import { answerByRoute } from './answer-by-route.js'
import { idLead, preflight } from './cors.js'
import { docsRoutes } from './docs-routes.js'
import { openExchange } from './open-exchange.js'
import type { Family } from './request-exchange.js'
import { RequestLog } from './request-log.js'
import type { Route } from './route.js'

export interface ServiceHostParts {
  /** All routes of the service except its own description. */
  readonly routes: readonly Route[]
  /** Head of its OpenAPI document. */
  readonly service: DescribedService
  /** Under which its requests are counted. */
  readonly family: Family
  /** Routes for operators are not answered over TLS. */
  readonly hidesOperators?: boolean
  readonly meters: Meters
  readonly log: Log
  readonly clock: Clock
}

/**
 * The handler of a service's own port: finds the route in one table. Every answer has a request id and CORS, and is counted and
 * logged as in the gateway. `/openapi.json` and `/api-docs` (and below `/v1`) describe the table. A slash at the end of a path is
 * ignored where no route has it. Answers without Cache-Control get `no-store`.
 * Throws where the routes contradict each other: a bug.
 */
export function serviceHost(parts: ServiceHostParts): (request: Request, reply: Reply) => void {
  const { service, family, hidesOperators = false, meters, log, clock } = parts
  const requestLog = new RequestLog(meters, log, clock)
  const router: Router<Route> = new Router<Route>(
    [...parts.routes, ...docsRoutes(() => router.operations, service, ['', '/v1'])],
    service.parameters,
  )
  return (request, reply) => {
    const exchange = openExchange(requestLog, request, reply, family, idLead)
    const found = router.find(request.path)
    const isHidden = hidesOperators && request.secure === true && found?.isForOperators === true
    const route = isHidden ? undefined : found
    if (request.method === 'OPTIONS') {
      preflight(request, reply, exchange.lines + (route?.optionLines ?? ''))
      requestLog.finish(exchange, { status: 204, bytes: 0, outcome: 'whole', reason: 'preflight' })
      return
    }
    answerByRoute(requestLog, router, exchange, route)
  }
}
