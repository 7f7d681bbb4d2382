import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../../config/read.js'
import type { NamedPublisher } from '../../config/swarm.js'
import { claimFolder } from '../actor/claim.js'
import { l1Kind } from '../bands/protocol.js'
import { Generations } from '../catalog/generations.js'
import { ChainIndex } from '../catalog/index-reader.js'
import { openCatalogTables } from '../catalog/tables.js'
import { folders } from '../main/folders.js'
import { subscriberThread, subscriptionOf } from '../main/swarm-thread.js'
import { fetchPublished } from './fetch-published.js'

/** Where the index ends; undefined where there is none. */
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

/** Bands on their way into the index; removed when they are in it, so that a killed import has them still. */
function waitingRoom(config: Config): string {
  return join(folders(config).root, 'importing')
}

/**
 * Fetches the Parquet bands that a gateway publishes and the index does not have, each seen to be what its publisher signed, and
 * sound. Resolves with the folder that holds them; undefined where not all could be had (said already). Rejects where another
 * process has `DATA_PATH`.
 */
export async function fetchBands(config: Config, named: NamedPublisher): Promise<string | undefined> {
  const claim = await claimFolder(folders(config).root)
  try {
    const top = await topOf(config)
    const given = {
      ...subscriberThread(config),
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
