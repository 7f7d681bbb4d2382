import { join, resolve } from 'node:path'
import type { MessagePort } from 'node:worker_threads'
import type { Config } from '../../config/read.js'
import { meterBytes } from '../actor/meter.js'
import { meterTable } from '../actor/meters.js'
import { SampleRings } from '../actor/sample-rings.js'
import { Following, Readiness, Tip } from '../actor/shared.js'
import { loadSigningKey } from '../attest/keys.js'
import type { BandsThread } from '../bands/wiring.js'
import { generationBytes } from '../catalog/generations.js'
import type { CatalogThread } from '../catalog/wiring.js'
import type { DevnetOptions } from '../devnet/options.js'
import type { EdgeThread } from '../gateway/wiring.js'
import { socketUsage } from '../http/listen.js'
import { Sieve } from '../moderation/sieve.js'
import type { ModerationThread } from '../moderation/wiring.js'
import type { QueryAsking } from '../query/wiring.js'
import { PeerWeights } from '../source/peer-weights.js'
import { progressBytes } from '../source/progress.js'
import type { SharedSegments } from '../store/segments/marks.js'
import { soundBytes } from '../store/sound-files.js'
import { PendingMarks } from '../upload/pending-marks.js'
import { bandsReading, bandsThread } from './bands-thread.js'
import type { Descriptors } from './descriptors.js'
import { type DiskShares, diskShares } from './disk-shares.js'
import { folders } from './folders.js'
import { gatewayOptions, localOnly } from './gateway-options.js'
import { type LimitsLines, paceOf } from './limits.js'
import { isSeeding, siteName } from './lying-gateways.js'
import { hostOptions, namesThread } from './names-thread.js'
import { chainOptions, type Network } from './network.js'
import type { PaymentsLines } from './payments-thread.js'
import { sharedSegments } from './segments.js'

/** What every thread is started with: the configuration's values, cut to what each needs to know. */

/** Memory that threads share; each table is written by one of them, or one row by each. */
export interface SharedTables {
  readonly generations: SharedArrayBuffer
  /** Which blobs were hashed. */
  readonly sound: SharedArrayBuffer
  readonly progress: SharedArrayBuffer
  readonly meters: SharedArrayBuffer
  /** Rows of the meter table. */
  readonly rows: {
    readonly swarm: number
    readonly payment: number
    readonly upload: number
    readonly queries: number
  }
  readonly tip: Tip
  readonly following: Following
  readonly readiness: Readiness
  readonly sieve: SharedArrayBuffer
  /** What was asked for, and who was refused, lately. */
  readonly resources: SharedArrayBuffer
  readonly limited: SharedArrayBuffer
  /** Of `PendingMarks`: uploads that the tables may not show yet. */
  readonly pendingItems: SharedArrayBuffer
  /** Weights of the gateways of the network. */
  readonly peerWeights: SharedArrayBuffer
  /** How the disk of DATA_PATH is shared out. */
  readonly disk: DiskShares
  /** Absent: every payload has a file of its own. */
  readonly segments?: SharedSegments
  /** Absent where the system sets no bound. */
  readonly descriptors?: Descriptors
}

export function sharedTables(config: Config, descriptors?: Descriptors): SharedTables {
  const { server, retrieval, peers, queries } = config
  const disk = diskShares(folders(config).root)
  const segments = sharedSegments(config, disk)
  return {
    disk,
    ...(descriptors === undefined ? {} : { descriptors }),
    ...(segments === undefined ? {} : { segments }),
    generations: new SharedArrayBuffer(generationBytes),
    sound: new SharedArrayBuffer(soundBytes()),
    // A transfer and a window transfer of the same payload may be open at once.
    progress: new SharedArrayBuffer(progressBytes(retrieval.fetchesMax * 2)),
    // Row 0 is the fetcher's; after the edge threads' come those of the index, of the swarm, of the two services, and of queries.
    meters: new SharedArrayBuffer(meterBytes(meterTable, server.edgeThreads + 5 + queries.threads)),
    rows: {
      swarm: server.edgeThreads + 2,
      payment: server.edgeThreads + 3,
      upload: server.edgeThreads + 4,
      queries: server.edgeThreads + 5,
    },
    tip: new Tip(),
    following: new Following(),
    readiness: new Readiness(),
    sieve: new SharedArrayBuffer(Sieve.bytes),
    resources: new SharedArrayBuffer(SampleRings.bytesFor(server.edgeThreads)),
    limited: new SharedArrayBuffer(SampleRings.bytesFor(server.edgeThreads)),
    pendingItems: new SharedArrayBuffer(PendingMarks.bytes),
    peerWeights: new SharedArrayBuffer(PeerWeights.bytesFor(peers.urls?.length ?? 0)),
  }
}

export function devnetThread(config: Config): { options: DevnetOptions } {
  const { devnetPort, devnetBlockMs, devnetReplayPath } = config.server
  const replay = devnetReplayPath === undefined ? {} : { replayPath: resolve(devnetReplayPath) }
  const dataPath = folders(config).devnet
  return { options: { host: '127.0.0.1', port: devnetPort, dataPath, blockMs: devnetBlockMs, ...replay } }
}

export function catalogThread(config: Config, shared: SharedTables): CatalogThread {
  return {
    // A popular blob causes one small write each ten seconds; eviction does not remove what was used in the last
    // minute.
    keeper: { path: folders(config).catalog, touchEveryMs: 10_000 },
    generations: shared.generations,
    logLevel: config.server.logLevel,
    isBeside: true,
  }
}

export function moderationThread(config: Config, { sieve, generations }: SharedTables): ModerationThread {
  const { moderation: path, catalog: catalogPath } = folders(config)
  return { path, catalogPath, generations, sieve, logLevel: config.server.logLevel }
}

export interface Lines {
  readonly catalogPort: MessagePort
  readonly moderationPort: MessagePort
  readonly ingestPort: MessagePort
  readonly sourcePort: MessagePort
  /** Absent: nothing is seeded or fetched. */
  readonly swarmPort?: MessagePort
}

export function edgeThread(
  config: Config,
  network: Network,
  shared: SharedTables,
  given: Lines &
    LimitsLines &
    PaymentsLines &
    QueryAsking & {
      readonly row: number
      readonly port: number
      /** Where the thread serves the console, too. */
      readonly console?: EdgeThread['console']
      readonly startedMs: number
      readonly adminKey: string
      readonly services: EdgeThread['services']
      readonly filters: EdgeThread['about']['filters']
    },
): EdgeThread {
  const { server } = config
  const { itemsSilentSeconds: silent } = config.indexing
  const { root, catalog, blobs } = folders(config)
  const hosts = hostOptions(config, given.port)
  return {
    row: given.row,
    names: namesThread(config, root),
    ...(hosts === undefined ? {} : { hosts }),
    ...(isSeeding(config) ? { prepares: siteName } : {}),
    adminKey: given.adminKey,
    services: given.services,
    ...(given.limits === undefined ? {} : { limits: given.limits }),
    ...(given.admissionPort === undefined ? {} : { admissionPort: given.admissionPort }),
    ...(given.payments === undefined ? {} : { payments: given.payments }),
    ...(given.paymentsPort === undefined ? {} : { paymentsPort: given.paymentsPort }),
    serve: {
      host: network.host,
      port: given.port,
      ...paceOf(config),
      ...connectionsOf(config, shared),
    },
    ...(given.console === undefined ? {} : { console: given.console }),
    drainMs: server.drainMs,
    catalogPort: given.catalogPort,
    sourcePort: given.sourcePort,
    resources: shared.resources,
    limited: shared.limited,
    peers: { urls: config.peers.urls ?? [], weights: shared.peerWeights },
    moderationPort: given.moderationPort,
    ...(given.swarmPort === undefined ? {} : { swarmPort: given.swarmPort }),
    ingestPort: given.ingestPort,
    queryPorts: given.queryPorts,
    queries: given.queries,
    cacheMaxBytes: config.retrieval.cacheMaxBytes,
    moderation: { path: folders(config).moderation, sieve: shared.sieve },
    mailboxMax: server.flowsMax * 2 + 64,
    catalogPath: catalog,
    bands: bandsReading(config, root),
    blobsPath: blobs,
    ...(shared.segments === undefined ? {} : { segments: shared.segments }),
    // 64 GiB of address space use no memory except page tables for what was read.
    mapped: { mappedMaxBytes: 64 * 2 ** 30, filesMax: shared.descriptors?.filesMax ?? 1024, believeMs: 1000 },
    repeatedMaxBytes: config.answers.repeatedMaxBytes,
    heldFilesMax: shared.descriptors?.filesMax ?? 1024,
    sound: shared.sound,
    generations: shared.generations,
    progress: shared.progress,
    meters: shared.meters,
    tip: shared.tip.memory,
    following: shared.following.memory,
    readiness: shared.readiness.memory,
    gateway: gatewayOptions(config, shared.descriptors?.manifestsMax),
    ...localOnly(config),
    chain: chainOptions(network.nodes, config),
    chunks: chunkOptions(config),
    vocabulary: server.vocabulary,
    ...(server.httpsigEnabled ? { signing: signing(config) } : {}),
    optimistic: config.indexing.optimistic,
    about: {
      startedMs: given.startedMs,
      release: server.release,
      network: server.network,
      filters: given.filters,
      ...(server.wallet === undefined ? {} : { wallet: server.wallet }),
      ...(server.bundlers === undefined ? {} : { bundlers: server.bundlers }),
      ...(silent === undefined ? {} : { itemsSilentMs: silent * 1000 }),
    },
    logLevel: server.logLevel,
  }
}

/** The addon counts the sockets of all threads; threads of its twin know nothing of each other, so each has its part. */
function connectionsOf(
  { server }: Config,
  { descriptors }: SharedTables,
): { readonly connectionsMax?: number } {
  if (descriptors === undefined) return {}
  const { socketsMax } = descriptors
  const own = socketUsage() === undefined ? Math.floor(socketsMax / server.edgeThreads) : socketsMax
  return { connectionsMax: Math.max(1, Math.min(own, 16_384)) }
}

function chunkOptions({ chunks, limits }: Config): EdgeThread['chunks'] {
  const postedShelfBytes = Math.floor(chunks.memoryMaxBytes / 4)
  return {
    finder: {
      deadlineMs: chunks.serveDeadlineMs,
      // Time for ten requests to a fast node; an answer without the id is complete all the same.
      nameMs: Math.min(1500, chunks.serveDeadlineMs / 2),
      flightsMax: 256,
      searchesMax: chunks.searchesMax,
      shelfBytes: chunks.memoryMaxBytes - postedShelfBytes,
      postedShelfBytes,
    },
    broadcast: {
      successesMin: chunks.postSuccessesMin,
      concurrency: chunks.postConcurrency,
      abortMs: chunks.postAbortMs,
      responseMs: chunks.postResponseMs,
      perNodeMax: 20,
    },
    pricedBytes: limits.chunkPricedBytes,
    learnMaxBytes: chunks.learnMaxBytes,
    dryRun: chunks.dryRun,
  }
}

/** What the thread that publishes bands is started with; undefined where nothing is published. */
export function publishingThread(config: Config, shared: SharedTables): BandsThread | undefined {
  const { root, catalog } = folders(config)
  const { bindRequest: _bind, reuseSeconds: _reuse, ...places } = signing(config)
  return bandsThread(config, { root, catalog, signing: places, generations: shared.generations })
}

/** Reads or makes the signing key. Throws an error that names the setting at fault. */
export function tryKey(config: Config): void {
  if (config.server.httpsigEnabled) loadSigningKey(signing(config))
}

/** Where the key is that signs answers, and how. */
export function signing(config: Config): NonNullable<EdgeThread['signing']> {
  const { server } = config
  const { root, keys } = folders(config)
  const { observerKeypairPath, observerPrivateKey, httpsigKeyFile } = server
  return {
    keyFile: httpsigKeyFile === undefined ? join(keys, 'httpsig.pem') : resolve(root, httpsigKeyFile),
    ...(observerKeypairPath === undefined ? {} : { observerKeypairPath: resolve(observerKeypairPath) }),
    ...(observerPrivateKey === undefined ? {} : { observerPrivateKey }),
    bindRequest: server.httpsigBindRequest,
    reuseSeconds: server.httpsigReuseSeconds,
  }
}
