import type { Config } from '../../config/read.js'
import { missingAddons } from '../../native/addon.js'
import { systemClock } from '../actor/clock.js'
import { IdleShare, ownIdleThreads } from '../actor/idle-share.js'
import type { Log } from '../actor/log.js'
import { Meters } from '../actor/meter.js'
import { meterTable } from '../actor/meters.js'
import { stepEngineBack } from '../actor/priority.js'
import { type Part, type RunningPart, supervise } from '../actor/supervise.js'
import type { Examples } from '../devnet/seed.js'
import { boundSockets, portsShared, socketUsage } from '../http/listen.js'
import { SocketWatch } from '../http/socket-watch.js'
import { adminKey } from './admin-key.js'
import { needsSwarm } from './bands-thread.js'
import { consoleOf } from './console-place.js'
import { claimDataFolder } from './data-folder.js'
import { type Descriptors, descriptorLimit, fitted, shareDescriptors } from './descriptors.js'
import type { SeededSite, seedSite } from './devnet-site.js'
import { folders } from './folders.js'
import { ingestThread, openingAbout } from './ingest-thread.js'
import { limitsOf } from './limits.js'
import { type Network, networkOf } from './network.js'
import { paymentsOf } from './payments-thread.js'
import { found, urlOf } from './ports.js'
import { queryThreads } from './query-threads.js'
import { ResourceWatch } from './resource-watch.js'
import { RunningThreads } from './running-threads.js'
import { sourceThread } from './source-thread.js'
import {
  catalogThread,
  devnetThread,
  edgeThread,
  moderationThread,
  publishingThread,
  type SharedTables,
  sharedTables,
  tryKey,
} from './threads.js'
import { watchdogPart } from './watch.js'

export interface Program {
  /** Name to base URL. */
  readonly urls: Readonly<Record<string, string>>
  /** Ids to try, by name; each is in the cache already. */
  readonly examples: Examples
  /** Names to try: label to the address of its content. */
  readonly names: Readonly<Record<string, string>>
  /** Resolves with a reason when a part is lost. */
  readonly lost: Promise<string>
  /** Drains and leaves, last started first. */
  stop(): Promise<void>
}

/**
 * Starts every part in order. Rejects, with everything taken down again, when one cannot start or when `end` fires before all
 * is up.
 */
export async function startProgram(given: Config, log: Log, end: AbortSignal): Promise<Program> {
  const { config, shared } = prepared(given, log)
  const { server } = config
  const network = networkOf(config)
  const startedMs = systemClock.now()
  const embedded = server.network === 'devnet' && server.trustedNodeUrls === undefined
  const threads = new RunningThreads(server.drainMs + 2000, log)
  const nodes = (): readonly string[] =>
    embedded ? [threads.said<{ url: string }>('devnet').url] : network.nodes
  const limits = limitsOf(config, threads)
  const payments = paymentsOf(config, threads, limits.lines)
  const queries = queryThreads(config, nodes, shared, threads)
  let port = server.port
  const page = consoleOf(config)
  let key = ''

  const edges = Array.from({ length: portsShared ? server.edgeThreads : 1 }, (_, index) =>
    threads.replaceable(`edge-${index + 1}`, 'edge', () => {
      const own = { row: index + 1, port, startedMs, adminKey: key, filters: openingAbout(config) }
      const admission = { ...limits.lines(), ...payments.lines() }
      const lines = { ...threads.lines(), ...admission, ...queries.asking(index), ...page.lines(index) }
      return edgeThread(config, { ...network, nodes: nodes() }, shared, { ...lines, ...own })
    }),
  )
  const supervised = await supervise(
    [
      { name: 'data folder', start: () => claimed(folders(config).root, log) },
      step('keys', () => {
        key = adminKey(config, log)
        // Each thread that signs reads its key itself; what is wrong with it is said before any of them is started.
        tryKey(config)
      }),
      ...(embedded ? [found('127.0.0.1', server.devnetPort, 'DEVNET_PORT')] : []),
      [...keepers(config, shared, threads, embedded), ...limits.parts],
      ...payments.parts,
      [...fetchers(config, () => ({ ...network, nodes: nodes() }), shared, threads), ...queries.parts],
      ...publishing(config, shared, threads),
      found(network.host, server.port, 'PORT', (free) => {
        port = free
      }),
      ...page.parts,
      edges,
      [{ name: 'watches', start: () => watching(config, shared, log) }, queries.boost],
      watchdogPart(threads, server.watchdogSeconds * 1000, ownMeters(shared), log),
    ],
    log,
  )
  const gateway = urlOf(network.host, port)
  const stop = () => supervised.stop()
  try {
    const [node = ''] = nodes()
    const shown = embedded ? await seeded(config, { gateway, node, log, end }, port) : nothingSeeded
    end.throwIfAborted()
    const urls = { gateway, ...page.urls(), ...(embedded ? { devnet: node } : {}) }
    return { urls, ...shown, lost: supervised.lost, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

const nothingSeeded: SeededSite = { examples: {}, names: {} }

/** Loaded where there is a site to seed. */
async function seeded(...given: Parameters<typeof seedSite>): Promise<SeededSite> {
  const [{ server }] = given
  if (!server.devnetSeed || server.devnetReplayPath !== undefined) return nothingSeeded
  return (await import('./devnet-site.js')).seedSite(...given)
}

/** What comes before any thread: the settings as this machine can bear them, and the memory that threads share. */
function prepared(given: Config, log: Log): { readonly config: Config; readonly shared: SharedTables } {
  warnOfMissingAddons(log)
  stepEngineBack(log)
  const descriptors = descriptorsOf(given, log)
  const config = fitted(given, descriptors)
  return { config, shared: sharedTables(config, descriptors) }
}

/** What each part may have open; and no more sockets than that are accepted. */
function descriptorsOf(config: Config, log: Log): Descriptors | undefined {
  const limit = descriptorLimit()
  if (limit === undefined) return undefined
  const shares = shareDescriptors({ ...config, usesSwarm: needsSwarm(config) }, limit)
  boundSockets(shares.socketsMax)
  log.info({ limit, ...shares }, 'open files are shared out')
  return shares
}

function warnOfMissingAddons(log: Log): void {
  const say =
    'a native addon is missing: install a C++17 compiler (Debian: g++), then npm run build, or npm rebuild sluice'
  for (const missing of missingAddons()) log.warn(missing, say)
}

/** Something that is done once, in its turn. */
function step(name: string, act: () => void): Part {
  return {
    name,
    start: async () => {
      act()
      return { stop: () => Promise.resolve() }
    },
  }
}

/** The embedded node, and the threads that write what all others read. */
function keepers(config: Config, shared: SharedTables, threads: RunningThreads, embedded: boolean): Part[] {
  return [
    ...(embedded ? [threads.part('devnet', 'devnet', () => devnetThread(config))] : []),
    threads.part('catalog', 'catalog', () => catalogThread(config, shared)),
    threads.part('moderation', 'moderation', () => moderationThread(config, shared)),
  ]
}

/** The threads that bring content and make the index grow; the catalog's keeper is up before them. */
function fetchers(
  config: Config,
  network: () => Network,
  shared: SharedTables,
  threads: RunningThreads,
): Part[] {
  return [
    threads.part('source', 'source', () => sourceThread(config, network(), shared, threads.line('catalog'))),
    threads.part('ingest', 'ingest', () => {
      return ingestThread(config, network().nodes, shared, threads.line('catalog'))
    }),
  ]
}

/** The threads for bands: one builds and publishes, where the operator gives any away; one seeds and fetches. */
function publishing(config: Config, shared: SharedTables, threads: RunningThreads): Part[] {
  const told = publishingThread(config, shared)
  const swarm = async () => (await import('./swarm-thread.js')).swarmThread(config, shared)
  return [
    ...(told === undefined ? [] : [threads.part('bands', 'bands', () => told)]),
    ...(needsSwarm(config) ? [threads.part('swarm', 'swarm', swarm)] : []),
  ]
}

/**
 * Looks at the whole process now and then: threads that run only where no other wants to are not forgotten for hours, and clients
 * that wait for room are told of.
 */
async function watching(config: Config, shared: SharedTables, log: Log): Promise<RunningPart> {
  const idleShare = new IdleShare(ownIdleThreads, log).keep(systemClock)
  const meters = ownMeters(shared)
  const sockets = new SocketWatch(socketUsage, meters, log, systemClock)
  meters.of('cache_max_bytes').set(config.retrieval.cacheMaxBytes)
  const resources = new ResourceWatch(folders(config).root, meters, log, systemClock)
  return {
    stop: async () => {
      idleShare.cancel()
      sockets.close()
      resources.close()
    },
  }
}

/** The main thread's own cells of the fetcher's row: no other thread counts what it counts. */
function ownMeters({ meters }: SharedTables): Meters {
  return new Meters(meterTable, meters, 0)
}

async function claimed(folder: string, log: Log): Promise<RunningPart> {
  const claim = await claimDataFolder(folder, log)
  return { stop: () => claim.release() }
}
