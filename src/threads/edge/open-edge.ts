import { systemClock } from '../../actor/clock.js'
import type { OpenThread } from '../../actor/run-thread.js'
import type { GatewayParts } from '../../gateway/gateway-parts.js'
import { socketUsage } from '../../http/listen.js'
import { openNames } from '../../names/open-names.js'
import { EdgeHandler } from '../../routes/edge-handler.js'
import { paceOf } from '../client-options.js'
import type { EdgeGiven, QueryLineNews } from '../edge-given.js'
import { hostOptions, isSeeding, namesOptions, siteName } from '../host-names.js'
import type { ThreadNews } from '../thread-news.js'
import { openEdgeAdmission } from './edge-admission.js'
import { openEdgeContent } from './edge-content.js'
import { type EdgeListeners, edgeListeners } from './edge-listeners.js'
import { type EdgeParts, type EdgeRoutes, edgeRoutes } from './edge-routes.js'
import { edgeTools } from './edge-tools.js'
import { gatewayOptions } from './gateway-options.js'

/** An edge thread: sockets, and everything that a request needs but the fetching of what is not here. */
export async function openEdge(given: EdgeGiven): Promise<OpenThread> {
  const { settings, memory, serve, ports } = given
  const tools = edgeTools(given)
  const { log, meters } = tools
  const content = await openEdgeContent(given, tools)
  const admission = await openEdgeAdmission(given, tools)
  const names = await openNames(namesOptions(settings), systemClock, meters, log)
  const parts: EdgeParts = {
    given,
    tools,
    content,
    admission,
    names,
    options: gatewayOptions(settings, admission.localOnly, memory.descriptors?.manifestsMax),
    hosts: hostOptions(settings, serve.port),
  }
  const routes = edgeRoutes(parts)
  const edgeHandler = new EdgeHandler(gatewayParts(parts, routes))
  const listeners = listenersOf(parts, edgeHandler, routes)
  await listeners.listening
  return {
    ready: { port: listeners.port },
    log,
    endsItself: true,
    onMessage(message) {
      const news = message as ThreadNews<'edge'>
      if ('certificates' in news) return listeners.onMessage(news)
      admission.use(news.settings)
      listeners.useClients(admission.gate?.lend())
      if (news.adminKey !== undefined) routes.useKey(news.adminKey)
    },
    onLine(port, about) {
      const { query, left } = about as QueryLineNews
      routes.useQueryLine(query, { port, left })
    },
    async close() {
      await listeners.close(settings.server.drainMs)
      edgeHandler.close()
      await routes.close()
      await names.close()
      await admission.close()
      await content.close()
      for (const port of Object.values(ports).flat()) port.close()
    },
  }
}

function gatewayParts(
  { tools, content, admission, names, hosts, options, given }: EdgeParts,
  { routes }: EdgeRoutes,
): GatewayParts {
  const { signer, vocabulary, tip, meters, log, clock, resources, readiness } = tools
  const { gate, clientOf } = admission
  const site = isSeeding(given.settings) ? siteName : undefined
  return {
    ...content.parts,
    ...(signer === undefined ? {} : { signer }),
    vocabulary,
    tip,
    meters,
    log,
    clock,
    clientOf,
    resources,
    ...(gate === undefined ? {} : { admission: gate }),
    routes,
    ...(hosts === undefined
      ? {}
      : {
          hostNames: {
            names: names.names,
            hosts,
            isPrepared: ({ full }) => full === site && !readiness.has('site'),
          },
        }),
    options,
  }
}

function listenersOf(parts: EdgeParts, edgeHandler: EdgeHandler, { console }: EdgeRoutes): EdgeListeners {
  const { given, tools, admission } = parts
  const { settings, memory, serve } = given
  const { gate, clientOf } = admission
  const { signer } = tools
  return edgeListeners({
    edgeHandler,
    ...tools,
    serve: { ...paceOf(settings), ...connectionsOf(given), ...serve, clientOf },
    responseCache: {
      // Each listener has a cache of its own.
      maxBytes: Math.floor(settings.answers.responseCacheMaxBytes / (given.tls === undefined ? 1 : 2)),
      limits: gate?.lend(),
      signing: signer?.borrowed,
      group: new Int32Array(memory.generations),
    },
    ...(given.tls === undefined ? {} : { tls: given.tls }),
    ...(given.redirect === undefined ? {} : { redirect: given.redirect }),
    ...(given.console === undefined ? {} : { operator: { place: given.console, routes: console } }),
  })
}

/** The addon counts the sockets of all threads; threads of its fallback know nothing of each other, so each has its part. */
function connectionsOf({ settings, memory }: EdgeGiven): { readonly connectionsMax?: number } {
  const { descriptors } = memory
  if (descriptors === undefined) return {}
  const { socketsMax } = descriptors
  const own = socketUsage() === undefined ? Math.floor(socketsMax / settings.server.edgeThreads) : socketsMax
  return { connectionsMax: Math.max(1, Math.min(own, 16_384)) }
}
