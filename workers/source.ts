import { parentPort, workerData } from 'node:worker_threads'
import { addressOf, answer } from '../src/actor/address.js'
import { systemClock } from '../src/actor/clock.js'
import { keepHeartbeat } from '../src/actor/heartbeats.js'
import { createLog } from '../src/actor/log.js'
import { Meters } from '../src/actor/meter.js'
import { meterTable } from '../src/actor/meters.js'
import type { ThreadOrder } from '../src/actor/thread.js'
import { Generations } from '../src/catalog/generations.js'
import { ChainIndex } from '../src/catalog/index-reader.js'
import { IndexedCatalog } from '../src/catalog/indexed.js'
import { settled } from '../src/catalog/merge.js'
import type { CatalogReply, CatalogRequest } from '../src/catalog/protocol.js'
import { openCatalogTables } from '../src/catalog/tables.js'
import { RemoteChain } from '../src/chain/remote.js'
import { Evidence } from '../src/ingest/evidence.js'
import { Verifier } from '../src/ingest/verifier.js'
import { priorities } from '../src/ingest/waiting.js'
import { cachedEvent } from '../src/ingest/webhook-events.js'
import { Webhooks } from '../src/ingest/webhooks.js'
import type { FetcherThread } from '../src/ingest/wiring.js'
import { SievedBlockList } from '../src/moderation/list.js'
import { Sieve } from '../src/moderation/sieve.js'
import { ModerationStore } from '../src/moderation/store.js'
import { Absences } from '../src/source/absences.js'
import { assemble } from '../src/source/assemble.js'
import { AvoidedOrigins } from '../src/source/avoided-origins.js'
import { BlobRoots } from '../src/source/blob-roots.js'
import { chainSources } from '../src/source/chain-sources.js'
import { insist } from '../src/source/commit-batch.js'
import { Evictor } from '../src/source/evictor.js'
import { Fetcher } from '../src/source/fetcher.js'
import { Keeping, type Kept } from '../src/source/keeping.js'
import { InlinePacker } from '../src/source/manifest-packer.js'
import { ManifestShelf } from '../src/source/manifest-shelf.js'
import { fetchMeters } from '../src/source/meters.js'
import { NetworkPeers } from '../src/source/network-peers.js'
import { Parent } from '../src/source/parent.js'
import { PeerWeights } from '../src/source/peer-weights.js'
import { Pins } from '../src/source/pins.js'
import { PooledProver } from '../src/source/pooled-prover.js'
import { ProgressTable } from '../src/source/progress.js'
import type { SourceProgress, SourceReply, SourceRequest } from '../src/source/protocol.js'
import { InlineProver } from '../src/source/prover.js'
import { RootHeights } from '../src/source/root-heights.js'
import { GatewayRoots } from '../src/source/root-lookup.js'
import { openSmallContent } from '../src/source/small-content.js'
import { Soundness } from '../src/source/soundness.js'
import { Suspects } from '../src/source/suspects.js'
import { TrustedGateways } from '../src/source/trusted-gateways.js'
import { Windows } from '../src/source/windows.js'
import { BlobStore, type FileIdentity } from '../src/store/blobs.js'
import { SoundFiles } from '../src/store/sound-files.js'
import { IntakeSource } from '../src/upload/intake-source.js'
import { PendingMarks } from '../src/upload/pending-marks.js'

/** The thread of the fetcher: every transfer from a source, the blobs on disk, and their proof. */
if (parentPort === null) throw new Error('this file runs as a thread')
const parent = parentPort
const given = workerData as FetcherThread
const log = createLog(given.logLevel, 'source')
const meters = new Meters(meterTable, given.meters, given.row)
const generations = new Generations(given.generations)
const index = new ChainIndex(openCatalogTables(given.catalogPath).environment, generations)
const catalog = new IndexedCatalog(given.catalogPath, generations, index)
const keeper = addressOf<CatalogRequest, CatalogReply>(given.keeper, given.keeperMailboxMax)
const blockStore = new ModerationStore(given.moderation.path)
const pins = given.pinsPath === undefined ? undefined : new Pins(given.pinsPath)
const isPinned = (digest: Uint8Array): boolean => pins?.has(digest) === true
const small =
  given.segments &&
  openSmallContent(given.segments, (gone) => void keeping.forget(gone), systemClock, log, isPinned)
// Drafts that are opened ahead: as many as a page load needs at the same time.
const store = new BlobStore(given.blobsPath, 8, small?.blobs)
const swept = await store.prepare()
if (swept > 0) log.warn({ swept }, 'half-written files of a killed process were removed')

const gateways = new TrustedGateways(given.gateways, systemClock)
const chain = given.chain === undefined ? undefined : new RemoteChain(given.chain, systemClock)
const roots = given.roots === undefined ? undefined : new GatewayRoots(given.roots, systemClock)
const heights = chain && new RootHeights(chain, systemClock)
const fromChain = chain && chainSources(chain, given.chunks, given.location, roots, heights, small?.chunks)
const peers =
  given.peers === undefined
    ? []
    : [new NetworkPeers(given.peers, systemClock, new PeerWeights(given.peers.weights))]
const blobRoots = new BlobRoots(catalog, store, systemClock)
const uploads =
  given.uploads &&
  new IntakeSource(given.uploads.tables, given.uploads.log, new PendingMarks(given.uploads.pending))
const built = [
  ...(uploads === undefined ? [] : [uploads]),
  new Parent(blobRoots, given.location),
  gateways,
  ...peers,
  ...(fromChain?.sources ?? []),
]

const pool = given.proofThreads === 0 ? undefined : new PooledProver(given.proofThreads, log)
const prover = pool ?? new InlineProver()
const packer = pool ?? new InlinePacker()
const manifests = new ManifestShelf(new BlobStore(given.manifestsPath), packer, log, given.manifests)
await manifests.prepare()
const onKept = (kept: Kept, identity: FileIdentity | undefined): void => {
  const { attributes, digest, hints, wishHints, named } = kept
  if (identity !== undefined) soundness.believe(digest, identity)
  const priority = named ? priorities.named : priorities.asked
  if (!settled(attributes))
    verifier?.add(attributes.id, hints.rootId === undefined ? wishHints : hints, priority)
  webhooks?.announce([cachedEvent(attributes.id, digest, attributes.size, attributes.contentType)])
}
const dropManifest = (digest: Uint8Array): Promise<void> => manifests.drop(digest)
const keeping = new Keeping(store, keeper, log, onKept, undefined, dropManifest, small?.blobs)
const soundness = new Soundness(
  store,
  prover,
  keeping,
  catalog,
  keeper,
  log,
  new SoundFiles(given.sound),
  small?.blobs,
)
const webhooks =
  given.webhooks === undefined
    ? undefined
    : new Webhooks(given.webhooks.path, given.webhooks.options, { meters, clock: systemClock, log })
const segmentBytes = (): number => small?.store.fileBytes ?? 0
const evictor = new Evictor(store, catalog, keeping, log, systemClock, given.eviction, segmentBytes, pins)
const background = assemble('background', given.backgroundOrder, built)
const fetcher = new Fetcher(
  new ProgressTable(given.progress),
  {
    source: assemble('on-demand', ['uploads', 'parent', ...given.order], built),
    store,
    ...(small === undefined ? {} : { small: small.blobs }),
    catalog,
    keeper,
    keeping,
    avoided: new AvoidedOrigins(systemClock),
    suspects: new Suspects(),
    forbidden: new SievedBlockList(new Sieve(given.moderation.sieve), blockStore, log),
    meters: fetchMeters(meters),
    log,
    options: given.fetch,
  },
  soundness,
  {
    fetchesMax: given.fetchesMax,
    joinBytes: given.joinBytes,
    wholeForWindowMaxBytes: given.wholeForWindowMaxBytes,
    trail: given.gateways,
    manifests,
    proving: background,
    windows: new Windows({ catalog, store, roots: blobRoots, prover, soundness, keeper, log }),
    ...(pins === undefined ? {} : { pins }),
    ...(given.absence === undefined ? {} : { absences: new Absences(given.absence, catalog, systemClock) }),
  },
)
const verifier =
  heights === undefined || fromChain === undefined || given.verifier === undefined
    ? undefined
    : new Verifier(
        {
          catalog,
          keeper,
          heights,
          evidence: new Evidence({
            store,
            prover,
            transactions: fromChain.transactions,
            openRoot: fromChain.chunks.openRoot,
            chunks: fromChain.chunks,
            directories: fromChain.directories,
            limits: given.location,
          }),
          async replace({ id, place }, digest) {
            await keeping.drop(digest)
            await insist(keeper, { kind: 'distrust', id })
            await fetcher.bring(id, place === undefined ? {} : { rootId: place.rootId }, background)
          },
          clock: systemClock,
          log,
        },
        given.verifier,
      )
evictor.start()
void manifests
  .takeOver((digest) => catalog.blobSize(digest) !== undefined)
  .catch((error: unknown) => log.error({ err: error }, 'packed manifests of before could not be listed'))
verifier?.start()
void webhooks?.run()

async function stop(): Promise<void> {
  await fetcher.stop()
  await store.close()
  blobRoots.close()
  // Every reader has left and released its slot. What is left is a leak.
  if (fetcher.held > 0) log.error({ held: fetcher.held }, 'transfers were still open when the thread ended')
  await Promise.all([evictor.stop(), verifier?.stop()])
  await small?.close()
  await pins?.close()
  await webhooks?.stop()
  await Promise.all([
    gateways.close(),
    ...peers.map((one) => one.close()),
    roots?.close(),
    chain?.close(),
    pool?.close(),
  ])
  await uploads?.close()
  await catalog.close()
  await blockStore.close()
  process.exit(0)
}

parent.on('message', (order: ThreadOrder) => {
  if ('stop' in order) {
    void stop()
    return
  }
  const caller = answer<SourceRequest, SourceReply, SourceProgress>(
    order.connect,
    (message, from) => fetcher.handle(message, from),
    () => [],
    true,
  )
  order.connect.on('close', () => fetcher.forget(caller))
})
keepHeartbeat()
parent.postMessage({ ready: true })
