import { join } from 'node:path'
import { type Vocabulary, vocabularies } from '../../attest/vocabulary.js'
import type { BandsReading, BandsThread } from '../../bands/bands-thread.js'
import { ownDomain, peerDomain, rootTxKind } from '../../bands/publication.js'
import { trackerOf } from '../../torrent/named-tracker.js'
import { folders } from '../folders.js'
import { publicOrigin } from '../host-names.js'
import { signingKey } from '../key-paths.js'
import type { Settings } from '../thread-settings.js'

/** Folder of the bands. */
export function bandsFolder(root: string): string {
  return join(root, 'bands')
}

/** How soon a new band is found; on devnet a developer waits for it. */
const watchMs = { mainnet: 30_000, devnet: 1000 }

/** Longest wait of one request for remote indexes; other sources may still find the item. */
const remoteMs = 5000

function domainOf(given: Vocabulary['name'] | 'vocabulary', vocabulary: Vocabulary['name']): string {
  return (given === 'vocabulary' ? vocabulary : given) === 'ar-io' ? peerDomain : ownDomain
}

/** Whether bands are seeded, or those of others fetched. */
export function needsSwarm({ swarm }: Settings<'swarm'>): boolean {
  return swarm.seed || swarm.subscriptions.length > 0
}

/** The tracker as everybody reaches it; undefined where the operator set no host. */
function ownTracker(config: Settings<'names' | 'server'>): string | undefined {
  const { server } = config
  const origin = publicOrigin(config, server.port)
  return origin && trackerOf(origin + vocabularies[server.vocabulary].pathPrefix)
}

/** What the thread that builds and publishes bands is started with; undefined where nothing is published. */
export function bandsThread(
  config: Settings<'bands' | 'indexing' | 'names' | 'server' | 'swarm'>,
  generations: SharedArrayBuffer,
): BandsThread | undefined {
  const { bands, server, indexing, swarm } = config
  if (!bands.publish) return undefined
  const forkDepth = indexing.forkDepthMax
  const build = {
    historyBlocks: bands.historyBlocks,
    recentEveryMs: bands.recentSeconds * 1000,
    deltaEveryMs: bands.deltaSeconds * 1000,
    forkDepth,
  }
  return {
    root: bandsFolder(folders(config).root),
    catalogPath: folders(config).catalog,
    generations,
    signing: signingKey(config),
    ...(bands.publisher === undefined ? {} : { publisher: bands.publisher }),
    publish: {
      domain: domainOf(bands.domain, server.vocabulary),
      pathPrefix: vocabularies[server.vocabulary].pathPrefix,
      ttlMs: bands.ttlSeconds * 1000,
      graceMs: bands.graceSeconds * 1000,
    },
    ...(swarm.seed ? { trackers: swarm.trackers, ownTracker: ownTracker(config) } : {}),
    build,
    ...(bands.parquet ? { l1: { signatures: false, forkDepth, everyMs: build.deltaEveryMs } } : {}),
    scanMs: bands.scanSeconds * 1000,
    logLevel: server.logLevel,
  }
}

/** How edge threads read bands. */
export function bandsReading(config: Settings<'bands' | 'server'>): BandsReading {
  const { bands, server } = config
  const root = bandsFolder(folders(config).root)
  return {
    root,
    published: bands.publish,
    finder: {
      bandFolders: [join(root, 'own', rootTxKind.index), join(root, 'installed', rootTxKind.index)],
      sources: bands.sources,
      watchMs: watchMs[server.network],
      watchSources: bands.watch,
      remoteMs,
    },
    remote: {
      regionsMax: bands.regionsMax,
      regionMs: bands.regionMs,
      concurrencyMax: bands.requestsMax,
      waitMs: bands.turnMs,
      coolMs: 30_000,
      httpMs: bands.requestMs,
      contentMs: remoteMs,
    },
    http: { timeoutMs: bands.requestMs, connectionsMax: bands.requestsMax },
  }
}
