import { resolve } from 'node:path'
import type { Config } from '../../config/read.js'
import { loadSigningKey } from '../attest/keys.js'
import type { CatalogThread } from '../catalog/catalog-thread.js'
import type { DevnetOptions } from '../devnet/devnet-options.js'
import type { ModerationThread } from '../moderation/moderation-thread.js'
import { folders } from '../threads/folders.js'
import { signingKey } from '../threads/key-paths.js'
import type { SharedMemory } from '../threads/shared-memory.js'

/** What the thread of the devnet is opened with. */
export function devnetThread(config: Config): { options: DevnetOptions } {
  const { devnetPort, devnetBlockMs, devnetReplayPath } = config.server
  const replay = devnetReplayPath === undefined ? {} : { replayPath: resolve(devnetReplayPath) }
  const dataPath = folders(config).devnet
  return { options: { host: '127.0.0.1', port: devnetPort, dataPath, blockMs: devnetBlockMs, ...replay } }
}

/** What the thread that writes the catalog is opened with. */
export function catalogThread(config: Config, shared: SharedMemory): CatalogThread {
  const { segmentRows: rows, forkDepthMax: forkDepth } = config.indexing
  return {
    // A popular blob causes one small write each ten seconds; eviction does not remove what was used in the last
    // minute.
    keeper: { path: folders(config).catalog, touchEveryMs: 10_000, flush: { rows, forkDepth } },
    generations: shared.generations,
    logLevel: config.server.logLevel,
    isBeside: true,
  }
}

/** What the thread that writes the block list is opened with. */
export function moderationThread(config: Config, { filter, generations }: SharedMemory): ModerationThread {
  const { moderation: path, catalog: catalogPath } = folders(config)
  return { path, catalogPath, generations, filter, logLevel: config.server.logLevel }
}

/** Reads or makes the signing key. Throws an error that names the setting at fault. */
export function tryKey(config: Config): void {
  if (config.server.httpsigEnabled) loadSigningKey(signingKey(config))
}
