import type { Reply, Request } from '../http/exchange.js'
import { readHops } from './hops.js'
import { origins } from './origin.js'
import type { Exchange, Family } from './request-exchange.js'
import { requestId } from './request-id.js'
import type { RequestLog } from './request-log.js'

const nothing: NonNullable<Exchange['cacheConditions']> = []

/**
 * The exchange of a request that just came. `lead`: what stands before its id in every head. The object is written out, because
 * this runs for every request and spreading would take most of its time.
 */
export function openExchange(
  requestLog: RequestLog,
  request: Request,
  reply: Reply,
  family: Family,
  lead: string,
): Exchange {
  const id = requestId(request)
  return {
    request,
    reply,
    family,
    method: request.method,
    path: request.path,
    requestId: id,
    lines: lead + id,
    startedMs: requestLog.begin(),
    hops: readHops(request),
    fallback: false,
    naming: undefined,
    firstTokenTaken: false,
    cacheConditions: nothing,
    origin: origins.own,
    opened: undefined,
    onUnknown: undefined,
    answered: false,
    finished: false,
  }
}
