import { parentPort, workerData } from 'node:worker_threads'
import { addressOf } from '../src/actor/address.js'
import { systemClock } from '../src/actor/clock.js'
import { keepHeartbeat } from '../src/actor/heartbeats.js'
import { createLog } from '../src/actor/log.js'
import { Meters } from '../src/actor/meter.js'
import { meterTable } from '../src/actor/meters.js'
import { preemptAtOnce } from '../src/actor/priority.js'
import { SampleRings } from '../src/actor/sample-rings.js'
import { Following, Readiness, Tip } from '../src/actor/shared.js'
import type { ThreadOrder } from '../src/actor/thread.js'
import { AddressThrottle } from '../src/admission/address-throttle.js'
import { Clients } from '../src/admission/clients.js'
import { Gate } from '../src/admission/gate.js'
import type { CashierReply, CashierRequest } from '../src/admission/settlement-protocol.js'
import { openBuckets } from '../src/admission/wiring.js'
import { loadSigningKey } from '../src/attest/keys.js'
import { createSigner } from '../src/attest/signature.js'
import { vocabularies } from '../src/attest/vocabulary.js'
import { BandFinder } from '../src/bands/finder.js'
import { rangesUpstream } from '../src/bands/ranges.js'
import { Generations } from '../src/catalog/generations.js'
import { ChainIndex } from '../src/catalog/index-reader.js'
import { IndexedCatalog } from '../src/catalog/indexed.js'
import type { CatalogReply, CatalogRequest } from '../src/catalog/protocol.js'
import { openCatalogTables } from '../src/catalog/tables.js'
import { IndexedSpans } from '../src/chain/indexed-spans.js'
import { soonStale } from '../src/gateway/cache-control.js'
import { Guard } from '../src/gateway/guard.js'
import type { Route } from '../src/gateway/parts.js'
import { repeatOptions } from '../src/gateway/repeating.js'
import type { EdgeThread } from '../src/gateway/wiring.js'
import type { Reply, Request } from '../src/http/exchange.js'
import { serve } from '../src/http/listen.js'
import type { IngestReply, IngestRequest } from '../src/ingest/protocol.js'
import { SievedBlockList } from '../src/moderation/list.js'
import type { ModerationReply, ModerationRequest } from '../src/moderation/protocol.js'
import { Sieve } from '../src/moderation/sieve.js'
import { ModerationStore } from '../src/moderation/store.js'
import { openNames } from '../src/names/wiring.js'
import type { ExportReply, ExportRequest } from '../src/parquet/export-protocol.js'
import { QueryLines } from '../src/query/lines.js'
import type { InfoParts } from '../src/routes/about-gateway.js'
import { AdminRoute } from '../src/routes/admin/admin-route.js'
import { cacheOrders } from '../src/routes/admin/cache-orders.js'
import { exportOrders } from '../src/routes/admin/export-orders.js'
import { indexOrders } from '../src/routes/admin/index-orders.js'
import { AdminKey } from '../src/routes/admin/key.js'
import { moderationOrders } from '../src/routes/admin/moderation-orders.js'
import { optimisticOrder } from '../src/routes/admin/optimistic-order.js'
import { overviewOrder } from '../src/routes/admin/overview-order.js'
import {
  creditOrderShapes,
  passedOrders,
  passingTo,
  uploadOrderShapes,
} from '../src/routes/admin/service-orders.js'
import { announceRoute } from '../src/routes/announce-route.js'
import { consoleDoor } from '../src/routes/console-door.js'
import { consoleRoutes } from '../src/routes/console-routes.js'
import { createGateway } from '../src/routes/gateway.js'
import { graphqlRoute } from '../src/routes/graphql-route.js'
import { aboutIndexes } from '../src/routes/index-routes.js'
import { infoRoutes } from '../src/routes/info-routes.js'
import { namingFor } from '../src/routes/name-route.js'
import { nodeRoutes } from '../src/routes/node-routes.js'
import { offsetsRoute } from '../src/routes/offsets-route.js'
import { peersRoute } from '../src/routes/peers-route.js'
import { limitsInfo, rateLimitRoutes } from '../src/routes/rate-limit-routes.js'
import { resolverRoute } from '../src/routes/resolver-route.js'
import { setNameRoute } from '../src/routes/set-name-route.js'
import { Opener } from '../src/source/opener.js'
import { PeerWeights } from '../src/source/peer-weights.js'
import { ProgressListener, ProgressTable } from '../src/source/progress.js'
import type { SourceProgress, SourceReply, SourceRequest } from '../src/source/protocol.js'
import { BlobFiles } from '../src/store/blob-files.js'
import { blobPath } from '../src/store/blobs.js'
import { MappedFiles } from '../src/store/mapped.js'
import { SegmentMarks } from '../src/store/segments/marks.js'
import { SegmentReader } from '../src/store/segments/segment-reader.js'
import { SoundFiles } from '../src/store/sound-files.js'
import type { SwarmReply, SwarmRequest } from '../src/torrent/swarm.js'

/** One thread that serves sockets: everything a request needs but the fetching of what is not here. */
if (parentPort === null) throw new Error('this file runs as a thread')
const parent = parentPort
const options = workerData as EdgeThread
const vocabulary = vocabularies[options.vocabulary]
const meters = new Meters(meterTable, options.meters, options.row)
const tip = new Tip(options.tip)
const { forkDepth } = options.gateway
const generations = new Generations(options.generations)
const { environment } = openCatalogTables(options.catalogPath)
const index = new ChainIndex(environment, generations)
const catalog = new IndexedCatalog(options.catalogPath, generations, index)
const keeper = addressOf<CatalogRequest, CatalogReply>(options.catalogPort, options.mailboxMax)
const progress = new ProgressListener(new ProgressTable(options.progress))
const fetcher = addressOf<SourceRequest, SourceReply, SourceProgress>(
  options.sourcePort,
  options.mailboxMax,
  progress.hear,
  true,
)
const files = new MappedFiles(options.mapped, systemClock)
const small =
  options.segments &&
  new SegmentReader(
    options.segments.folder,
    new SegmentMarks(options.segments.memory, options.segments.shape),
    systemClock,
  )
const blobs = new BlobFiles(files, options.heldFilesMax)
const key = options.signing === undefined ? undefined : loadSigningKey(options.signing)

const log = createLog(options.logLevel, `edge-${options.row}`)
preemptAtOnce(log)
const signer =
  key === undefined || options.signing === undefined ? undefined : createSigner(key, options.signing)
const saying = { vocabulary, clock: systemClock, log, ...(signer === undefined ? {} : { signer }) }
const limits =
  options.limits === undefined || options.admissionPort === undefined
    ? undefined
    : await openBuckets(
        options.limits,
        { port: options.admissionPort, mailboxMax: options.mailboxMax },
        systemClock,
        log,
      )
const selling =
  limits === undefined || options.payments === undefined || options.paymentsPort === undefined
    ? undefined
    : (await import('../src/admission/payments-wiring.js')).openPayments(options.payments, {
        cashier: addressOf<CashierRequest, CashierReply>(options.paymentsPort, options.mailboxMax),
        pathPrefix: vocabulary.pathPrefix,
        clientOf: (request) => limits.clients.of(request).exact,
        clock: systemClock,
        meters,
      })
const taking = selling === undefined ? {} : { payments: selling.payments }
const limited = new SampleRings(options.limited, options.row - 1)
const gate =
  limits === undefined
    ? undefined
    : new Gate({
        ...limits,
        ...taking,
        exemptNames: options.limits?.exemptNames ?? [],
        meters,
        throttle: new AddressThrottle(systemClock),
        onLimited: (address) => limited.note(systemClock.now(), address, 0),
      })
const adminKey = new AdminKey(options.adminKey)
const blockStore = new ModerationStore(options.moderation.path)
const blocks = new SievedBlockList(new Sieve(options.moderation.sieve), blockStore, log)
const { localOnly } = options
// Its keys are never used for buckets, so the secret does not matter.
const localClients = localOnly && new Clients(localOnly, { low: 0, high: 0 })
const localOnlyClient = localClients && ((request: Request) => localClients.of(request).exempt)
const guard = new Guard(blocks, catalog, options.gateway.cache.blockedSeconds)
const source = new Opener(fetcher, progress, systemClock, catalog, small)
const clients =
  limits?.clients ?? new Clients({ ...options.queries.clients, exempt: [] }, { low: 0, high: 0 })
const clientOf = (request: Request): string => clients.of(request).address
const nodes = nodeRoutes({
  ...saying,
  clientOf,
  blocking: { guard, source },
  meters,
  ...(gate === undefined ? {} : { admission: gate }),
  chain: options.chain,
  chunks: options.chunks,
  settledSeconds: options.gateway.cache.stableSeconds,
  tip,
  index: new IndexedSpans(index, tip, forkDepth),
})
const { finder: finding, remote, http: remoteHttp, root: bandsRoot, published } = options.bands
const upstream = rangesUpstream(remoteHttp)
const finder = new BandFinder(
  finding,
  { upstream, content: source, clock: systemClock, options: remote },
  log,
  meters,
)
// Read where something is published only, because checking a publication takes zod, 2.7 MB of this thread.
const offers = published
  ? new (await import('../src/bands/offer.js')).OfferReader(bandsRoot, systemClock)
  : { root: bandsRoot, current: () => undefined }
const naming = await openNames(options.names, systemClock, meters, log)
const resolver = resolverRoute({
  ...saying,
  names: naming.names,
  clientOf,
  self: options.gateway,
  notFound: soonStale(options.gateway.cache),
})
const { queue, left, sizeMaxBytes, heldMaxBytes } = options.queries
const queryLines = new QueryLines(
  options.queryPorts.map((port, at) => ({ port, left: left[at] as SharedArrayBuffer })),
  { ...queue, heldMaxBytes },
)
const graphql = graphqlRoute({ threads: queryLines, sizeMaxBytes, clientOf, meters })
const moderation = addressOf<ModerationRequest, ModerationReply>(options.moderationPort, options.mailboxMax)
const tracking: readonly Route[] =
  options.swarmPort === undefined
    ? []
    : [
        announceRoute({
          pathPrefix: vocabulary.pathPrefix,
          tracker: addressOf<SwarmRequest, SwarmReply>(options.swarmPort, 1024),
          clientOf: (request) => request.remoteAddress,
        }),
      ]
const ingest = addressOf<IngestRequest | ExportRequest, IngestReply | ExportReply>(
  options.ingestPort,
  options.mailboxMax,
)
const following = new Following(options.following)
const readiness = new Readiness(options.readiness)
const resources = new SampleRings(options.resources, options.row - 1)
/** Segments count their own bytes. */
const usage = (): { blobs: number; bytes: number } => {
  const { blobs, bytes } = catalog.usage()
  return { blobs, bytes: bytes + (small?.marks.fileBytes ?? 0) }
}
const { upload, payment, liars } = options.services
const info: InfoParts = {
  vocabulary,
  meters,
  tip,
  following,
  clock: systemClock,
  ...options.about,
  ...(key === undefined ? {} : { key }),
  usage,
  sections: {
    names: { rootHosts: options.hosts?.rootHosts ?? [], resolvers: naming.asked },
    ...(limits === undefined ? {} : { rateLimiter: limitsInfo(limits.buckets) }),
    ...(selling === undefined ? {} : { x402: selling.about }),
    ...(liars === undefined ? {} : { devnet: { liars } }),
    // A getter, because the document can appear and expire while this thread runs.
    get indexes() {
      return aboutIndexes(offers, vocabulary.pathPrefix, systemClock.now())
    },
  },
}
const stored = { catalog, usage, maxBytes: options.cacheMaxBytes }
const orders = [
  overviewOrder({
    ...stored,
    info,
    store: blockStore,
    resources,
    limited,
    clock: systemClock,
    services: options.services,
    readiness,
    ...(selling === undefined ? {} : { payments: selling.recent }),
  }),
  ...moderationOrders({ keeper: moderation, store: blockStore }),
  ...indexOrders({ ingest, keeper, index, tip, forkDepth, following, clock: systemClock }),
  ...cacheOrders({ ...stored, fetcher }),
  ...exportOrders(ingest),
  optimisticOrder({ keeper, index, isEnabled: options.optimistic }),
  ...(upload === undefined ? [] : passedOrders(uploadOrderShapes, passingTo(upload, options.adminKey))),
  ...(payment === undefined ? [] : passedOrders(creditOrderShapes, passingTo(payment, options.adminKey))),
]
const admin = new AdminRoute(vocabulary.pathPrefix, adminKey, orders, log, (request) => {
  return limits?.clients.of(request).address ?? request.remoteAddress
})
const gateway = createGateway({
  catalog,
  keeper,
  source,
  finder,
  blobs: {
    path: (digest) => blobPath(options.blobsPath, digest),
    open: blobs.open,
    ...(small === undefined ? {} : { segments: small }),
  },
  sound: new SoundFiles(options.sound),
  ...(signer === undefined ? {} : { signer }),
  vocabulary,
  tip,
  meters,
  log,
  clock: systemClock,
  guard,
  clientOf,
  resources,
  ...(gate === undefined ? {} : { admission: gate }),
  offered: { offers, files },
  routes: [
    ...infoRoutes(info),
    ...(limits === undefined
      ? []
      : rateLimitRoutes({
          ...limits,
          ...taking,
          clock: systemClock,
          log,
          pathPrefix: vocabulary.pathPrefix,
          isAdmin: (request) => adminKey.opens(request),
        })),
    ...(selling?.routes ?? []),
    ...nodes.routes,
    ...tracking,
    offsetsRoute({ ...saying, catalog, guard, bands: finder }),
    resolver,
    setNameRoute({
      pathPrefix: vocabulary.pathPrefix,
      rootHosts: options.hosts?.rootHosts ?? [],
      ...(naming.registry && { registry: naming.registry }),
      guard,
      clock: systemClock,
      log,
      clientOf,
    }),
    peersRoute({
      pathPrefix: vocabulary.pathPrefix,
      gateways: options.peers.urls,
      weights: new PeerWeights(options.peers.weights),
      nodes: options.chain.nodes,
    }),
    graphql,
    admin,
  ],
  ...namingFor(naming.names, options, readiness),
  options: { ...options.gateway, ...(localOnlyClient === undefined ? {} : { localOnlyClient }) },
})
const onThrow = (error: unknown): void => log.error({ err: error }, 'a flow threw: its socket was closed')
const content = (request: Request, reply: Reply): void => gateway.handle(request, reply)
const repeats = repeatOptions(options.repeatedMaxBytes, log, resources, {
  limits: gate?.lend(),
  signing: signer?.lent,
  group: new Int32Array(options.generations),
})
const server = serve(content, { ...options.serve, ...repeats, clientOf, onThrow })
const consoleServer =
  options.console === undefined
    ? undefined
    : serve(
        consoleDoor({
          content,
          meters,
          log,
          clock: systemClock,
          // The page has the info of the gateway behind its key: nothing else stands at `/` here.
          routes: [
            ...consoleRoutes(vocabulary.pathPrefix),
            ...infoRoutes(info).filter(({ path }) => path !== '/'),
            admin,
            resolver,
          ],
        }),
        { ...options.serve, ...options.console, onThrow },
      )

async function stop(): Promise<void> {
  await Promise.all([server.close(options.drainMs), consoleServer?.close(options.drainMs)])
  // Requests that took too long were aborted, and an abort releases everything. What is left is a leak.
  if (server.flows > 0) log.error({ flows: server.flows }, 'requests were still open when the thread ended')
  gateway.close()
  await nodes.close()
  await naming.close()
  await limits?.close()
  await selling?.close()
  blobs.close()
  files.close()
  await small?.close()
  finder.close()
  queryLines.close()
  await upstream.destroy()
  await catalog.close()
  await blockStore.close()
  await environment.close()
  options.catalogPort.close()
  options.sourcePort.close()
  options.swarmPort?.close()
  options.moderationPort.close()
  options.ingestPort.close()
  options.admissionPort?.close()
  options.paymentsPort?.close()
  parent.close()
}

// A bug. Logged here, because the process ends with this thread.
process.on('uncaughtException', (error) => {
  log.fatal({ err: error }, 'uncaught: ending')
  process.exit(1)
})
parent.on('message', (order: ThreadOrder) => {
  if ('stop' in order) void stop()
})
keepHeartbeat()
await Promise.all([server.listening, consoleServer?.listening])
parent.postMessage({ ready: { port: server.port } })
