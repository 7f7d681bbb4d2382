import type { Log } from '../../actor/log.js'
import type { SampleRings } from '../../actor/sample-rings.js'
import { Challenges } from '../../certificates/challenges.js'
import { responseCacheOptions } from '../../gateway/cache-filler.js'
import { type Handler, type ServeOptions, type Server, securely, serve } from '../../http/listen.js'
import type { CacheLimits, ResponseCacheOptions } from '../../http/response-cache.js'
import { type ConsoleHandlerParts, consoleHandler } from '../../routes/console-handler.js'
import type { EdgeHandler } from '../../routes/edge-handler.js'
import { httpsRedirect } from '../../routes/https-redirect.js'
import type { Route } from '../../serving/route.js'
import type { EdgeGiven } from '../edge-given.js'
import { logsThrows, type ServiceListeners, serviceListeners } from '../service-listeners.js'

export interface EdgeListening extends Pick<ConsoleHandlerParts, 'meters' | 'clock'> {
  readonly edgeHandler: Pick<EdgeHandler, 'handle'>
  readonly log: Log
  /** Hears of requests that the listener answered by itself. */
  readonly resources: SampleRings
  /** Absent `onThrow`: what a request threw is logged. */
  readonly serve: Omit<ServeOptions, 'onThrow' | 'responseCache'> & Partial<Pick<ServeOptions, 'onThrow'>>
  /** The response cache of the listener; `maxBytes` 0: none. */
  readonly responseCache: Pick<ResponseCacheOptions, 'maxBytes' | 'limits' | 'signing' | 'group'>
  /** HTTPS; absent: it is not served. */
  readonly tls?: EdgeGiven['tls']
  /** What redirects to HTTPS; absent: nothing does. */
  readonly redirect?: EdgeGiven['redirect']
  /** The console; absent: it is not served. */
  readonly operator?: {
    readonly place: NonNullable<EdgeGiven['console']>
    readonly routes: readonly Route[]
  }
}

export interface EdgeListeners extends ServiceListeners {
  /** From now on clients of cached answers are distinguished by these lists; undefined: nobody is limited there. */
  useClients(lists: Pick<CacheLimits, 'trusted' | 'exempt'> | undefined): void
}

/** The listeners in front of a gateway: plain HTTP, HTTPS, the one that redirects to it, and those of the console. */
export function edgeListeners(given: EdgeListening): EdgeListeners {
  const { edgeHandler, log, resources, responseCache, tls } = given
  const onThrow = logsThrows(log)
  const handler: Handler = (request, reply) => edgeHandler.handle(request, reply)
  const options = { onThrow, ...given.serve }
  const { maxBytes, ...shared } = responseCache
  const server = serve(handler, { ...options, ...responseCacheOptions(maxBytes, log, resources, shared) })
  const secure = tls && serveTls(given, options, tls)
  const redirecting = serveRedirect(given, options)
  const consoleListeners = serveConsole(given, handler, options)
  return {
    get port() {
      return server.port
    },
    listening: Promise.all([
      server.listening,
      secure?.listening,
      redirecting?.listening,
      consoleListeners?.listening,
    ]),
    onMessage(news) {
      secure?.setCertificates(news.certificates)
      consoleListeners?.onMessage(news)
    },
    useClients(lists) {
      for (const one of [server, secure]) if (lists !== undefined) one?.responseCache?.useClients(lists)
    },
    async close(graceMs) {
      const all = [server, secure, redirecting, consoleListeners]
      await Promise.all(all.map((one) => one?.close(graceMs)))
      // Requests that took too long were aborted, and an abort releases everything. What is left is a leak.
      const open = server.openRequests + (secure?.openRequests ?? 0)
      if (open > 0) log.error({ requests: open }, 'requests were still open when the thread ended')
    },
  }
}

/**
 * The listener of HTTPS: its response cache it shares with those of other threads only, since addresses in answers begin with
 * `https`.
 */
function serveTls(
  { edgeHandler, log, resources, responseCache }: EdgeListening,
  options: ServeOptions,
  { group, ...place }: NonNullable<EdgeGiven['tls']>,
): Server {
  const { maxBytes, ...shared } = responseCache
  const cache = responseCacheOptions(maxBytes, log, resources, { ...shared, group: new Int32Array(group) })
  return serve((request, reply) => edgeHandler.handle(request, reply), {
    ...options,
    ...securely(place),
    ...cache,
  })
}

function serveConsole(
  { operator, meters, log, clock }: EdgeListening,
  content: Handler,
  { clientOf: _, ...options }: ServeOptions,
): ServiceListeners | undefined {
  if (operator === undefined) return undefined
  const { tls, ...place } = operator.place
  const handler = consoleHandler({ content, meters, log, clock, routes: operator.routes })
  return serviceListeners(handler, { ...options, ...place }, tls)
}

function serveRedirect(
  { redirect, meters, log, clock }: EdgeListening,
  options: ServeOptions,
): Server | undefined {
  if (redirect === undefined) return undefined
  const { host, port, httpsPort, challenges: folder } = redirect
  const challenges = new Challenges(folder)
  return serve(httpsRedirect({ httpsPort, challenges, meters, log, clock }), { ...options, host, port })
}
