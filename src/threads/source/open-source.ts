import { join } from 'node:path'
import type { MessagePort } from 'node:worker_threads'
import { systemClock } from '../../actor/clock.js'
import { createLog, type Log } from '../../actor/log.js'
import { type Address, addressOf, answer } from '../../actor/mailbox-address.js'
import { Meters } from '../../actor/meter.js'
import { meterTable } from '../../actor/meter-table.js'
import type { OpenThread } from '../../actor/run-thread.js'
import type { Attributes } from '../../catalog/attributes.js'
import type { CatalogReply, CatalogRequest } from '../../catalog/catalog-messages.js'
import { Generations } from '../../catalog/generations.js'
import { ChainIndex } from '../../catalog/index-reader.js'
import { IndexedCatalog } from '../../catalog/indexed.js'
import type { LmdbCatalog } from '../../catalog/reader.js'
import { openCatalogTables } from '../../catalog/tables.js'
import { ChunkHolders } from '../../chain/chunk-holders.js'
import { RemoteChain } from '../../chain/remote-chain.js'
import type { Id } from '../../format/id.js'
import { cachedEvent } from '../../ingest/webhook-events.js'
import { Webhooks } from '../../ingest/webhooks.js'
import { BlockFilter } from '../../moderation/block-filter.js'
import { FilteredBlockList } from '../../moderation/list.js'
import { ModerationStore } from '../../moderation/moderation-store.js'
import type { Kept, KeptNotes } from '../../source/keeping/blob-cache.js'
import { insist } from '../../source/keeping/commit-batch.js'
import { Evictor } from '../../source/keeping/evictor.js'
import { Pins } from '../../source/keeping/pins.js'
import { openSmallContent, type SmallContent } from '../../source/keeping/small-content.js'
import { PooledProver } from '../../source/proving/pooled-prover.js'
import { ProgressTable } from '../../source/reading/progress-table.js'
import { BlobRoots } from '../../source/roots/blob-roots.js'
import { type ChainSources, chainSources } from '../../source/roots/chain-sources.js'
import { Parent } from '../../source/roots/parent.js'
import { RootHeights } from '../../source/roots/root-heights.js'
import { GatewayRoots } from '../../source/roots/root-lookup.js'
import type { Source } from '../../source/source.js'
import { sourceDefaults } from '../../source/source-defaults.js'
import type { SourceProgress, SourceReply, SourceRequest } from '../../source/source-messages.js'
import type { ContentTier } from '../../source/tier/content-tier.js'
import { Absences } from '../../source/transfer/absences.js'
import type { Fetcher } from '../../source/transfer/fetcher.js'
import { GatewaySource } from '../../source/upstream/gateway-source.js'
import { LearnedFile } from '../../source/upstream/learned-file.js'
import { NetworkPeers } from '../../source/upstream/network-peers.js'
import { PeerWeights } from '../../source/upstream/peer-weights.js'
import { BlobStore } from '../../store/blobs.js'
import { SoundFiles } from '../../store/sound-files.js'
import { IntakeSource } from '../../upload/intake/intake-source.js'
import { PendingMarks } from '../../upload/records/pending-marks.js'
import { chainOptions, chunkGateways } from '../chain-options.js'
import { folders } from '../folders.js'
import { uploadFolders } from '../upload-options.js'
import { type OpenedFetcher, openFetcher } from './open-fetcher.js'
import { type Neighbours, openNeighbours } from './open-neighbours.js'
import { answerTier, openTier } from './open-tier.js'
import { openVerification, type VerificationParts } from './open-verification.js'
import type { SourceGiven } from './source-given.js'
import {
  evictionOptions,
  manifestOptions,
  peerOptions,
  rawOptions,
  rootLookupOptions,
} from './source-options.js'
import { backgroundOrder, sourceOrder } from './source-order.js'

/** Content that an operator has brought from the object store leaves room for what readers ask for. */
const pulledShare = 0.95

/** The store of this machine, as the fetcher writes and reads it. */
interface SourceStore {
  readonly log: Log
  readonly catalog: IndexedCatalog
  readonly keeper: Address<CatalogRequest, CatalogReply>
  readonly blocks: ModerationStore
  readonly forbidden: FilteredBlockList
  readonly pins: Pins
  readonly small: SmallContent | undefined
  readonly store: BlobStore
  readonly roots: BlobRoots
  /** What is known of the chunks of nodes. */
  readonly holders: ChunkHolders
}

/** The thread of the fetcher: every transfer from a source, the blobs on disk, and their proof. */
export async function openSource(given: SourceGiven): Promise<OpenThread> {
  const { settings, memory } = given
  const log = createLog(settings.server.logLevel, 'source')
  const meters = new Meters(meterTable, memory.meters, memory.rows.source)
  const machine = await openStore(given, log)
  const { store, catalog, pins, small, roots } = machine
  const sources = openSources(given, machine, meters)
  const pool = new PooledProver(Math.max(1, settings.server.edgeThreads >> 1), log)
  const webhooks = webhooksOf(given, meters, log)
  const tier = tierOf(given, machine, meters)
  const onProven = (ids: readonly Id[]): void => tier?.verified(ids)
  // Proofs begin with `verification.start`: the fetcher that fetches anew what they refute is open by then.
  const replace: VerificationParts['replace'] = (attributes, digest) =>
    replaceContent(opened, machine.keeper, sources.background, attributes, digest)
  const verification = openVerification(given, { ...machine, pool, meters, replace, onProven })
  const onKept = (kept: Kept): void => {
    const { attributes, digest } = kept
    verification?.recorded(kept)
    if (attributes.verified && kept.source !== tier?.source.name) tier?.verified([attributes.id])
    webhooks?.announce([cachedEvent(attributes.id, digest, attributes.size, attributes.contentType)])
  }
  const notes = verification?.notes
  const opened = await fetcherOf(given, machine, sources, { pool, meters, onKept, notes, tier })
  const { fetcher, blobCache, manifests } = opened
  small?.onEvicted((digests) => void blobCache.forget(digests))
  const segmentBytes = (): number => small?.store.fileBytes ?? 0
  const eviction = evictionOptions(settings)
  const evictor = new Evictor(store, catalog, blobCache, log, systemClock, eviction, segmentBytes, pins)
  evictor.start()
  void manifests
    .takeOver((digest) => catalog.blobSize(digest) !== undefined)
    .catch((error: unknown) => log.error({ err: error }, 'packed manifests of before could not be listed'))
  verification?.start()
  tier?.start(bringing(opened, catalog, tier.source))
  void webhooks?.run()
  return {
    connect: (port) => hear(port, fetcher, tier),
    async close() {
      await fetcher.stop()
      // What it proves until its end is written down by the tier.
      await verification?.close()
      await tier?.close()
      await store.close()
      roots.close()
      // Every reader has left and released its slot. What is left is a leak.
      if (fetcher.held > 0)
        log.error({ held: fetcher.held }, 'transfers were still open when the thread ended')
      await evictor.stop()
      await small?.close()
      await pins.close()
      await webhooks?.stop()
      await Promise.all([sources.close(), pool.close()])
      await sources.uploads?.close()
      await catalog.close()
      await machine.blocks.close()
    },
  }
}

/** Messages of an edge thread (`TransferClient`) come by `port`. */
function hear(port: MessagePort, fetcher: Fetcher, tier: ContentTier | undefined): void {
  const caller = answer<SourceRequest, SourceReply, SourceProgress>(
    port,
    (message, from) =>
      message.kind === 'object-store' ? answerTier(tier, message) : fetcher.handle(message, from),
    { isBatched: true },
  )
  port.on('close', () => fetcher.forget(caller))
}

function tierOf({ settings }: SourceGiven, machine: SourceStore, meters: Meters): ContentTier | undefined {
  const { catalog, small, forbidden } = machine
  const { cacheMaxBytes } = settings.retrieval
  return openTier(settings, {
    ...machine,
    meters,
    isForbidden: (id, digest) => forbidden.blocksId(id) || forbidden.blocksDigest(digest),
    hasRoom: () => catalog.blobBytes() + (small?.store.fileBytes ?? 0) < cacheMaxBytes * pulledShare,
  })
}

async function openStore({ settings, memory, ports }: SourceGiven, log: Log): Promise<SourceStore> {
  const places = folders(settings)
  const generations = new Generations(memory.generations)
  const { environment } = openCatalogTables(places.catalog)
  const index = new ChainIndex(environment, generations)
  const catalog = new IndexedCatalog(places.catalog, generations, index, () => environment)
  const keeper = addressOf<CatalogRequest, CatalogReply>(ports.catalog, sourceDefaults.keeperMailboxMax)
  const blocks = new ModerationStore(places.moderation)
  const forbidden = new FilteredBlockList(new BlockFilter(memory.filter), blocks, log)
  const pins = new Pins(places.pins)
  const isPinned = (digest: Uint8Array): boolean => pins.has(digest)
  const small = memory.segments && openSmallContent(memory.segments, systemClock, log, isPinned)
  // Drafts that are opened ahead: as many as a page load needs at the same time.
  const store = new BlobStore(places.blobs, 8, small?.blobs)
  const swept = await store.prepare()
  if (swept > 0) log.warn({ swept }, 'half-written files of a killed process were removed')
  const roots = new BlobRoots(catalog, store, systemClock)
  const holders = new ChunkHolders(systemClock)
  return { log, catalog, keeper, blocks, forbidden, pins, small, store, roots, holders }
}

interface OpenedSources {
  /** All that the settings name; `sourceOrder` puts them in order. */
  readonly built: readonly Source[]
  /** Requested for proven bytes where cached ones proved wrong. */
  readonly background: Source
  readonly fromChain: ChainSources
  readonly heights: RootHeights
  readonly uploads: IntakeSource | undefined
  /** Uploads of other machines. */
  readonly neighbours: Neighbours | undefined
  /** Ends the connections to gateways and nodes. */
  close(): Promise<void>
}

/** Everything that content can come from. */
function openSources(
  given: SourceGiven,
  { small, roots: blobRoots, holders, log }: SourceStore,
  meters: Meters,
): OpenedSources {
  const { settings, memory, nodes } = given
  const { location } = sourceDefaults
  const { retrieval } = settings
  const raw = { ...rawOptions(settings, memory), gateways: given.gateways }
  const gateways = new GatewaySource(raw, systemClock)
  const peersOfChunks = chunkGateways(settings)
  const usual = chainOptions(nodes, settings)
  const chainOf = peersOfChunks === undefined ? usual : { ...usual, chunkGateways: peersOfChunks }
  const chain = new RemoteChain(chainOf, systemClock, undefined, holders)
  const lookup = rootLookupOptions(settings)
  const failing = meters.of('root_lookup_gateways_failing')
  const roots = lookup && new GatewayRoots(lookup, systemClock, (gateways) => failing.set(gateways))
  const heights = new RootHeights(chain, systemClock)
  const chunks = {
    ...sourceDefaults.chunks,
    concurrencyMax: retrieval.chunkReadAhead,
    memoryMaxBytes: settings.chunks.memoryMaxBytes,
    firstDataMs: settings.chunks.firstDataMs,
  }
  const fromChain = chainSources(chain, chunks, location, roots, heights, small?.chunks)
  const known = peerOptions(settings, memory)
  const peers = known && new NetworkPeers(known, systemClock, new PeerWeights(memory.peerWeights))
  const learners = { chunks: holders, ...(peers === undefined ? {} : { peers }) }
  const learned = new LearnedFile(join(folders(settings).root, 'peers.json'), learners, log, systemClock)
  const uploads = given.hasUploads ? uploadsOf(given) : undefined
  const neighbours = openNeighbours(settings, meters, log)
  const built = [
    ...(uploads === undefined ? [] : [uploads]),
    new Parent(blobRoots, location),
    gateways,
    ...(peers === undefined ? [] : [peers]),
    ...fromChain.sources,
  ]
  return {
    built,
    background: backgroundOrder(settings, built),
    fromChain,
    heights,
    uploads,
    neighbours,
    async close() {
      await learned.close()
      await neighbours?.close()
      await Promise.all([gateways.close(), peers?.close(), roots?.close(), chain.close()])
    },
  }
}

function uploadsOf({ settings, memory }: SourceGiven): IntakeSource {
  const { tables, log } = uploadFolders(settings)
  return new IntakeSource(tables, log, new PendingMarks(memory.pendingItems))
}

function webhooksOf({ settings, webhooks }: SourceGiven, meters: Meters, log: Log): Webhooks | undefined {
  const folder = join(folders(settings).root, 'webhooks-cached')
  return webhooks && new Webhooks(folder, webhooks, { meters, clock: systemClock, log })
}

function fetcherOf(
  given: SourceGiven,
  { log, catalog, keeper, store, small, roots, pins, forbidden }: SourceStore,
  sources: OpenedSources,
  {
    pool,
    meters,
    onKept,
    notes,
    tier,
  }: {
    readonly pool: PooledProver
    readonly meters: Meters
    readonly onKept: (kept: Kept) => void
    readonly notes: KeptNotes | undefined
    readonly tier: ContentTier | undefined
  },
): Promise<OpenedFetcher> {
  const { settings, memory } = given
  const { retrieval, absence, answers } = settings
  const { joinBytes, wholeForWindowMaxBytes, fetch } = sourceDefaults
  const { built, neighbours } = sources
  return openFetcher({
    source: sourceOrder(settings, { built, neighbours: neighbours?.source, tier: tier?.source }),
    progress: new ProgressTable(memory.progress),
    store,
    small: small?.blobs,
    catalog,
    keeper,
    roots,
    prover: pool,
    packer: pool,
    manifestsPath: folders(settings).manifests,
    manifests: manifestOptions(settings),
    sound: new SoundFiles(memory.sound),
    forbidden,
    meters,
    log,
    fetch: { ...fetch, digestBufferMaxBytes: answers.digestBufferMaxBytes },
    rules: {
      fetchesMax: retrieval.fetchesMax,
      joinBytes,
      wholeForWindowMaxBytes,
      trail: rawOptions(settings, memory),
      provenSource: sources.background,
      pins,
      fills: { maxBytes: retrieval.fillMaxBytes, concurrency: retrieval.fillConcurrency },
      ...(absence.enabled ? { absences: new Absences(absence, catalog, systemClock) } : {}),
    },
    onKept,
    notes,
  })
}

/** Brings a content from the object store onto this disk; true where it is there afterwards. */
function bringing({ fetcher, blobCache }: OpenedFetcher, catalog: LmdbCatalog, source: Source) {
  return async (id: Id): Promise<boolean> => {
    await fetcher.fetchFrom(id, {}, source)
    const digest = catalog.attributes(id)?.digest
    return (
      blobCache.uncommitted.get(id) !== undefined ||
      (digest !== undefined && catalog.blobSize(digest) !== undefined)
    )
  }
}

/** Drops the bytes of a content that proved wrong, forgets what came with them, and brings proven ones. */
async function replaceContent(
  { blobCache, fetcher }: OpenedFetcher,
  keeper: SourceStore['keeper'],
  background: Source,
  { id, place }: Attributes,
  digest: Uint8Array,
): Promise<void> {
  await blobCache.drop(digest)
  await insist(keeper, { kind: 'distrust', id })
  await fetcher.fetchFrom(id, place === undefined ? {} : { rootId: place.rootId }, background)
}
