import type { Reply, Request } from '../http/exchange.js'
import { corsLines, preflight } from './cors.js'
import { DataRoute, methodsOf, type Target, targetOf } from './data-route.js'
import { Delivery } from './deliver.js'
import { Entries } from './entry.js'
import { answerText, type Family, type Flow, Ledger } from './flow.js'
import { createHeadWriter } from './head.js'
import { readHops } from './hints.js'
import { Locator } from './locate.js'
import { ManifestRoute } from './manifest-route.js'
import { Manifests } from './manifests.js'
import type { GatewayParts, Route } from './parts.js'
import { requestId } from './request-id.js'
import { Router } from './router.js'
import { Touches } from './touches.js'
import { WatchedReply } from './watched-reply.js'

/** What answers requests on one edge thread. */
export interface Gateway {
  /** Answers. Ends the reply exactly once, now or later; content in memory is out when this returns. Throws on a bug
   * that came after the head: the socket must be closed then. */
  handle(request: Request, reply: Reply): void
  /** Tells the keeper what was served last. Call it when no flow is left. */
  close(): void
}

/** Builds the gateway of one edge thread. */
export function createGateway(parts: GatewayParts): Gateway {
  const { catalog, blobs, source, tip, clock, log, options, admission } = parts
  const ledger = new Ledger(parts.meters, log, clock)
  const entries = new Entries(catalog, (digest) => blobs.path(digest), tip, options)
  const locator = new Locator(entries, blobs, source, log, options.checkWaitBytes)
  const touches = new Touches(parts.keeper, clock)
  const writer = createHeadWriter(parts)
  const hopsName = `${parts.vocabulary.gateway}Hops`
  const delivery = new Delivery({
    ...{ ledger, locator, writer, source, touches, tip, clock, options, hopsName },
    admission,
  })
  const manifests = new ManifestRoute(ledger, locator, delivery, new Manifests(), options.manifestMaxBytes)
  const data = new DataRoute(ledger, locator, delivery, manifests)
  const router = new Router(parts.routes ?? [])
  const { pathPrefix } = parts.vocabulary
  const uncached = ['admin', 'rate-limit', 'x402'].map((name) => `${pathPrefix}/${name}`)
  const caching = ({ method, path }: Flow): string | undefined =>
    (method !== 'GET' && method !== 'HEAD') || uncached.some((start) => path.toLowerCase().startsWith(start))
      ? undefined
      : `public, max-age=${options.cache.defaultSeconds}`

  const open = (request: Request, reply: Reply, family: Family): Flow => {
    const id = requestId(request)
    return {
      request,
      reply,
      family,
      method: request.method,
      path: request.path,
      requestId: id,
      lines: `${corsLines}\r\nX-Request-Id: ${id}`,
      startedMs: ledger.begin(),
      hops: readHops(request),
      fallback: false,
      answered: false,
      settled: false,
    }
  }

  const content = (request: Request, reply: Reply, target: Target): void => {
    const flow = open(request, reply, target.kind === 'raw' ? 'raw' : 'data')
    const methods = methodsOf(target.kind)
    if (!methods.includes(flow.method)) {
      wrongMethod(ledger, flow, methods)
      return
    }
    try {
      data.handle(flow, target)
    } catch (error) {
      const over = flow.answered
      delivery.failed(flow, error)
      // Half an answer may be out: the server closes the socket of a handler that throws.
      if (over) throw error
    }
  }

  const beside = (request: Request, reply: Reply, route: Route): void => {
    const flow = open(request, reply, route.family)
    if (!route.methods.includes(flow.method)) {
      wrongMethod(ledger, flow, route.methods)
      return
    }
    const watched = new WatchedReply(reply, caching(flow), (status, sent) => {
      flow.answered = true
      ledger.settle(flow, { status, ...sent, reason: route.path })
    })
    const run = async (): Promise<void> => route.handle(request, watched, flow.lines)
    delivery.run(flow, run())
  }

  return {
    handle(request, reply) {
      const target = targetOf(request.path)
      if (request.method === 'OPTIONS') {
        const flow = open(request, reply, 'other')
        preflight(request, reply, flow.lines)
        return ledger.settle(flow, { status: 204, bytes: 0, outcome: 'whole', reason: 'preflight' })
      }
      if (target !== undefined) return content(request, reply, target)
      const route = router.find(request.path)
      if (route !== undefined) return beside(request, reply, route)
      answerText(
        ledger,
        open(request, reply, 'other'),
        { status: 404, text: 'Not found' },
        { fault: 'client' },
      )
    },
    close: () => touches.close(),
  }
}

function wrongMethod(ledger: Ledger, flow: Flow, methods: readonly string[]): void {
  const lines = `\r\nAllow: ${[...methods, 'OPTIONS'].join(', ')}`
  answerText(ledger, flow, { status: 405, text: 'Method not allowed', lines }, { fault: 'client' })
}
