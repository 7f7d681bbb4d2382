import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../../config/read.js'
import type { NamedPublisher } from '../../config/swarm.js'
import { l1Kind } from '../bands/publication.js'
import { Generations } from '../catalog/generations.js'
import { ChainIndex } from '../catalog/index-reader.js'
import { openCatalogTables } from '../catalog/tables.js'
import { claimDataFolder } from '../main/data-folder.js'
import { folders } from '../threads/folders.js'
import { subscriberOptions, subscriptionOf } from '../threads/index/swarm-options.js'
import { fetchPublished } from './fetch-published.js'

/** The highest block of the index; undefined where there is no index. */
async function topOf(config: Config): Promise<number | undefined> {
  const { catalog } = folders(config)
  if (!existsSync(catalog)) return undefined
  const { environment } = openCatalogTables(catalog)
  const index = new ChainIndex(environment, new Generations())
  index.refresh()
  const top = index.topHeight()
  await environment.close()
  return top
}

/**
 * Folder of fetched bands. They are removed only after they are in the index, so that an import that was killed finds them.
 */
function waitingRoom(config: Config): string {
  return join(folders(config).root, 'importing')
}

/**
 * Fetches the Parquet bands that a gateway publishes and the index does not have, each compared with what its publisher
 * signed, and checked. Resolves with the folder that holds them; undefined where some could not be fetched (already printed).
 * Rejects where another process uses `DATA_PATH`.
 */
export async function fetchBands(config: Config, named: NamedPublisher): Promise<string | undefined> {
  const claim = await claimDataFolder(folders(config).root)
  try {
    const top = await topOf(config)
    const given = {
      ...subscriberOptions(config),
      subscriptions: [subscriptionOf(config, named)],
      kinds: [l1Kind.kind],
    }
    const isAll = await fetchPublished(given, waitingRoom(config), ({ heightRange }) => {
      return top === undefined || (heightRange?.[1] ?? Number.POSITIVE_INFINITY) > top
    })
    return isAll ? join(waitingRoom(config), 'installed', l1Kind.index) : undefined
  } finally {
    await claim.release()
  }
}

/** Removes what `fetchBands` fetched. */
export async function dropBands(config: Config): Promise<void> {
  await rm(waitingRoom(config), { recursive: true, force: true })
}
