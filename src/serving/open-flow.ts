import type { Reply, Request } from '../http/exchange.js'
import type { Family, Flow, Ledger } from './flow.js'
import { readHops } from './hops.js'
import { origins } from './origin.js'
import { requestId } from './request-id.js'

const nothing: NonNullable<Flow['rests']> = []

/**
 * The flow of a request that just came. `lead`: what stands before its id in every head. The object is written out, because
 * this runs for every request and spreading would take most of its time.
 */
export function openFlow(ledger: Ledger, request: Request, reply: Reply, family: Family, lead: string): Flow {
  const id = requestId(request)
  return {
    request,
    reply,
    family,
    method: request.method,
    path: request.path,
    requestId: id,
    lines: lead + id,
    startedMs: ledger.begin(),
    hops: readHops(request),
    fallback: false,
    naming: undefined,
    firstTokenTaken: false,
    rests: nothing,
    origin: origins.own,
    instead: undefined,
    answered: false,
    settled: false,
  }
}
