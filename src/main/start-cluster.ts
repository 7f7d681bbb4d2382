import type { Config } from '../../config/read.js'
import { runningServices } from '../../config/services.js'
import type { Part } from '../actor/supervise.js'
import { folders } from '../threads/folders.js'
import { namesFolder } from '../threads/host-names.js'
import type { ClusterGiven, ClusterNotice } from '../threads/open-cluster.js'
import { nodeName } from '../threads/open-objects.js'
import type { SharedMemory } from '../threads/shared-memory.js'

/** The threads of the program, as far as this one needs them. */
interface ClusterCrew {
  part(name: string, file: string, data: () => object): Part
  tell(file: string, about: string, message: unknown): void
}

/** This machine in its cluster: its lists are compared before anything is served from them. */
export function clusterOf(
  config: Config,
  memory: SharedMemory,
  crew: ClusterCrew,
): { readonly parts: Part[]; announce(urls: Readonly<Record<string, string>>): void } {
  const { databaseUrl, redisUrl } = config.cluster
  if (databaseUrl === undefined) return { parts: [], announce: () => undefined }
  const { root, moderation } = folders(config)
  const data = (): ClusterGiven => ({
    databaseUrl,
    redisUrl,
    node: nodeName(config),
    services: [...runningServices(config.services, config.server.network)],
    pushes: config.clickhouse.push && runningServices(config.services, config.server.network).has('gateway'),
    lists: { moderation, names: namesFolder(root) },
    memory: { meters: memory.meters, rows: memory.rows },
    logLevel: config.server.logLevel,
  })
  return {
    parts: [crew.part('cluster', 'cluster', data)],
    announce: (urls) => crew.tell('cluster', 'urls', { urls } satisfies ClusterNotice),
  }
}
