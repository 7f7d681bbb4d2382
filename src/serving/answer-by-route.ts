import type { Router } from '../http/router.js'
import { answerFailed, answerText, answerWrongMethod } from './exchange-answers.js'
import type { Exchange } from './request-exchange.js'
import type { RequestLog } from './request-log.js'
import type { Route } from './route.js'
import { WatchedReply } from './watched-reply.js'

/**
 * Has a route of the table answer: 404 where there is none, 405 for a method that it does not have, 500 where it throws. What
 * was sent is counted and logged with the route's path. Good answers without Cache-Control get `caching`.
 */
export function answerByRoute(
  requestLog: RequestLog,
  router: Router<Route>,
  exchange: Exchange,
  route: Route | undefined,
  caching = 'no-store',
): void {
  if (route === undefined) {
    answerText(requestLog, exchange, { status: 404, text: 'Not found' }, { fault: 'client' })
    return
  }
  const methods = router.methodsOf(route)
  if (!methods.includes(exchange.method)) {
    answerWrongMethod(requestLog, exchange, methods)
    return
  }
  const watched = new WatchedReply(exchange.reply, caching, (status, sent) => {
    exchange.answered = true
    requestLog.finish(exchange, { status, ...sent, reason: route.path })
  })
  const run = async (): Promise<void> => route.handle(exchange.request, watched, exchange.lines, exchange)
  void run().catch((error: unknown) => answerFailed(requestLog, exchange, error))
}
