import { consolePortOf } from '../../../config/server.js'
import { addressOf } from '../../actor/mailbox-address.js'
import { IndexedSpans } from '../../chain/indexed-spans.js'
import { soonStale } from '../../gateway/cache-control.js'
import type { HostOptions } from '../../gateway/gateway-parts.js'
import type { GatewayOptions } from '../../gateway/gateway-rules.js'
import type { IngestReply, IngestRequest } from '../../ingest/ingest-messages.js'
import type { ModerationReply, ModerationRequest } from '../../moderation/moderation-messages.js'
import type { OpenNames } from '../../names/open-names.js'
import type { ExportReply, ExportRequest } from '../../parquet/export-protocol.js'
import { type QueryLine, QueryLines } from '../../query/lines.js'
import { queryLimits } from '../../query/query-limits.js'
import type { Beside, InfoParts } from '../../routes/about-gateway.js'
import { AdminKey } from '../../routes/admin/admin-key.js'
import { adminRoute } from '../../routes/admin/admin-route.js'
import { cacheOrders } from '../../routes/admin/cache-orders.js'
import { type ClusterReply, type ClusterRequest, clusterOrder } from '../../routes/admin/cluster-order.js'
import { exportOrders } from '../../routes/admin/export-orders.js'
import { HistoryOrders } from '../../routes/admin/history-orders.js'
import { indexOrders } from '../../routes/admin/index-orders.js'
import { moderationOrders } from '../../routes/admin/moderation-orders.js'
import { optimisticOrder } from '../../routes/admin/optimistic-order.js'
import type { Order } from '../../routes/admin/order.js'
import { overviewOrder } from '../../routes/admin/overview-order.js'
import {
  creditOrderShapes,
  passedOrders,
  passingTo,
  uploadOrderShapes,
} from '../../routes/admin/service-orders.js'
import { storeOrders } from '../../routes/admin/store-orders.js'
import { announceRoute } from '../../routes/announce-route.js'
import { consoleRoutes } from '../../routes/console-routes.js'
import { infoRoutes } from '../../routes/gateway-info-routes.js'
import { graphqlRoute } from '../../routes/graphql-route.js'
import { aboutIndexes } from '../../routes/index-routes.js'
import { type NodeRoutes, nodeRoutes } from '../../routes/node-routes.js'
import { offsetsRoute } from '../../routes/offsets-route.js'
import { peersRoute } from '../../routes/peers-route.js'
import { resolverRoute } from '../../routes/resolver-route.js'
import { setNameRoute } from '../../routes/set-name-route.js'
import type { ClientOf } from '../../serving/in-slot.js'
import type { Route } from '../../serving/route.js'
import type { StatementParts } from '../../serving/statements.js'
import { PeerWeights } from '../../source/upstream/peer-weights.js'
import type { SwarmReply, SwarmRequest } from '../../torrent/swarm.js'
import { chainOptions } from '../chain-options.js'
import type { EdgeGiven } from '../edge-given.js'
import { folders } from '../folders.js'
import { openingAbout } from '../opening-rules.js'
import { chunkOptions } from '../source/chunk-options.js'
import type { EdgeAdmission } from './edge-admission.js'
import type { EdgeContent } from './edge-content.js'
import type { EdgeTools } from './edge-tools.js'

/** What the routes of an edge thread stand on. */
export interface EdgeParts {
  readonly given: EdgeGiven
  readonly tools: EdgeTools
  readonly content: EdgeContent
  readonly admission: EdgeAdmission
  readonly names: OpenNames
  readonly options: GatewayOptions
  /** Undefined: hosts mean nothing. */
  readonly hosts: HostOptions | undefined
}

export interface EdgeRoutes {
  /** Beside content. */
  readonly routes: readonly Route[]
  /** On the address of the console. */
  readonly console: readonly Route[]
  /** Opens the routes of the operator from now on. */
  useKey(key: string): void
  /** A query thread took the place of another one: it is reached by this line from now on. */
  useQueryLine(at: number, line: QueryLine): void
  close(): Promise<void>
}

/** Answers, beside content, of one edge thread. */
export function edgeRoutes(parts: EdgeParts): EdgeRoutes {
  const { given, tools, content, admission, names, options, hosts } = parts
  const { clock, log, vocabulary, signer } = tools
  const { pathPrefix } = vocabulary
  const { clientOf } = admission
  const { settings, ports, nodes: nodeUrls, memory } = given
  const saying = { vocabulary, clock, log, ...(signer === undefined ? {} : { signer }) }
  const notFound = soonStale(options.cache)
  const resolver = resolverRoute({ ...saying, names: names.names, clientOf, self: options, notFound })
  const info = infoParts(parts)
  const about = infoRoutes(info)
  const adminKey = new AdminKey(given.adminKey)
  const history = new HistoryOrders({ path: folders(settings).history, clock })
  const orders = [...adminOrders(parts, info, adminKey), ...history.list()]
  const admin = adminRoute({ pathPrefix, key: adminKey, orders, log, clientOf, clock })
  const nodes = routesOfNodes(parts, saying)
  const queries = openQueryLines(given)
  const { sizeMaxBytes } = queryLimits
  return {
    routes: [
      ...about,
      ...admission.routes((request) => adminKey.opens(request)),
      ...nodes.routes,
      ...trackerRoutes(ports.swarm, pathPrefix, admission.exactOf),
      offsetsRoute({ ...saying, catalog: content.catalog, guard: content.guard, bands: content.finder }),
      resolver,
      setNameRoute({
        pathPrefix,
        rootHosts: hosts?.rootHosts ?? [],
        ...(names.registry && { registry: names.registry }),
        guard: content.guard,
        clock,
        log,
        clientOf,
      }),
      peersRoute({
        pathPrefix,
        gateways: settings.peers.urls ?? [],
        weights: new PeerWeights(memory.peerWeights),
        nodes: nodeUrls,
      }),
      graphqlRoute({ threads: queries, sizeMaxBytes, clientOf, meters: tools.meters }),
      admin,
    ],
    // The page has the info of the gateway behind its key: nothing else stands at `/` there.
    console: [...consoleRoutes(pathPrefix), ...about.filter(({ path }) => path !== '/'), admin, resolver],
    useKey: (key) => adminKey.use(key),
    useQueryLine: (at, line) => queries.replace(at, line),
    async close() {
      await nodes.close()
      queries.close()
      await history.close()
    },
  }
}

/** What clients of nodes ask a gateway for. */
function routesOfNodes(
  { given: { settings, nodes }, tools, content, admission, options }: EdgeParts,
  saying: StatementParts,
): NodeRoutes {
  const { guard, index, parts } = content
  const { clientOf, gate } = admission
  return nodeRoutes({
    ...saying,
    clientOf,
    blocking: { guard, transfers: parts.transfers },
    meters: tools.meters,
    ...(gate === undefined ? {} : { admission: gate }),
    chain: chainOptions(nodes, settings),
    chunks: chunkOptions(settings),
    settledSeconds: options.cache.stableSeconds,
    tip: tools.tip,
    index: new IndexedSpans(index, tools.tip, options.forkDepth),
  })
}

/** The tracker of our bands, where there is one. */
function trackerRoutes(port: EdgeGiven['ports']['swarm'], pathPrefix: string, clientOf: ClientOf): Route[] {
  if (port === undefined) return []
  const tracker = addressOf<SwarmRequest, SwarmReply>(port, 1024)
  return [announceRoute({ pathPrefix, tracker, clientOf })]
}

/** Answers that clients have not taken yet, in answers of the largest size. */
const heldAnswers = 8

function openQueryLines({ settings: { queries }, ports, queryLeft }: EdgeGiven): QueryLines {
  const lines = ports.queries.map((port, at) => ({ port, left: queryLeft[at] as SharedArrayBuffer }))
  return new QueryLines(lines, { ...queries, heldMaxBytes: queries.answerMaxBytes * heldAnswers })
}

/** What `/info` and its like show. */
function infoParts({ given, tools, content, admission, names, hosts }: EdgeParts): InfoParts {
  const { settings, services } = given
  const { server, indexing } = settings
  const { key, vocabulary, meters, tip, following, clock } = tools
  const { liars } = services
  const named = { rootHosts: hosts?.rootHosts ?? [], resolvers: names.resolvers }
  return {
    vocabulary,
    meters,
    tip,
    following,
    clock,
    startedMs: given.startedMs,
    release: server.release,
    network: server.network,
    filters: openingAbout(settings),
    ...(server.wallet === undefined ? {} : { wallet: server.wallet }),
    ...(server.bundlers === undefined ? {} : { bundlers: server.bundlers }),
    ...(indexing.itemsSilentSeconds === undefined
      ? {}
      : { itemsSilentMs: indexing.itemsSilentSeconds * 1000 }),
    ...(key === undefined ? {} : { key }),
    usage: content.usage,
    segments: () => {
      content.index.refresh()
      return content.index.segmentTotals()
    },
    // Getters: limits may change, and the document of the indexes can appear and expire, while this thread runs.
    get beside() {
      return besideOf(given, { ...admission.stated, ...named })
    },
    get sections() {
      return {
        names: named,
        ...admission.sections,
        ...(liars === undefined ? {} : { devnet: { liars } }),
        indexes: aboutIndexes(content.offers, vocabulary.pathPrefix, clock.now()),
      }
    },
  }
}

/** What the page at `/` shows besides. */
function besideOf({ settings: { server }, services }: EdgeGiven, stated: Beside): Beside {
  const { upload, payment, publicPayment } = services
  const { consoleEnabled, consoleAddress: address } = server
  return {
    ...stated,
    ...(upload === undefined ? {} : { upload }),
    ...(payment === undefined ? {} : { payment }),
    ...(publicPayment === undefined ? {} : { publicPayment }),
    ...(consoleEnabled ? { console: { address, port: consolePortOf(server) } } : {}),
  }
}

/** Orders of the operator. */
function adminOrders(
  { given, tools, content, admission, options }: EdgeParts,
  info: InfoParts,
  adminKey: AdminKey,
): Order[] {
  const { settings, services, ports } = given
  const { mailboxMax, resources, limited, clock, readiness, tip, following } = tools
  const { catalog, index, keeper, fetcher, blocks: store, usage } = content
  const { upload, payment } = services
  const { selling } = admission
  const stored = { catalog, usage, maxBytes: settings.retrieval.cacheMaxBytes }
  const moderation = addressOf<ModerationRequest, ModerationReply>(ports.moderation, mailboxMax)
  const ingest = addressOf<IngestRequest | ExportRequest, IngestReply | ExportReply>(ports.ingest, mailboxMax)
  const { forkDepth } = options
  return [
    overviewOrder({
      ...stored,
      info,
      store,
      resources,
      limited,
      clock,
      services,
      readiness,
      hasCluster: ports.cluster !== undefined,
      ...(selling === undefined ? {} : { payments: selling.recent }),
    }),
    ...moderationOrders({ keeper: moderation, store }),
    ...indexOrders({ ingest, keeper, index, tip, forkDepth, following, clock }),
    ...cacheOrders({ ...stored, fetcher }),
    ...storeOrders(fetcher),
    clusterOrder(ports.cluster && addressOf<ClusterRequest, ClusterReply>(ports.cluster, mailboxMax)),
    ...exportOrders(ingest),
    optimisticOrder({ keeper, index, isEnabled: settings.indexing.optimistic }),
    ...(upload === undefined ? [] : passedOrders(uploadOrderShapes, passingTo(upload, adminKey))),
    ...(payment === undefined ? [] : passedOrders(creditOrderShapes, passingTo(payment, adminKey))),
  ]
}
