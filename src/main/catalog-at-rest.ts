import type { Config } from '../../config/read.js'
import type { Log } from '../actor/log.js'
import { type Address, addressOf } from '../actor/mailbox-address.js'
import { startThread } from '../actor/thread.js'
import type { CatalogReply, CatalogRequest } from '../catalog/catalog-messages.js'
import { Generations } from '../catalog/generations.js'
import { ChainIndex } from '../catalog/index-reader.js'
import { openCatalogTables } from '../catalog/tables.js'
import type { Environment } from '../store/lmdb.js'
import { folders } from '../threads/folders.js'
import type { SharedMemory } from '../threads/shared-memory.js'
import { sharedMemory } from './allocate-memory.js'
import { claimDataFolder } from './data-folder.js'
import { catalogThread } from './thread-options.js'

/** Requests that may wait for the keeper. */
const mailboxMax = 64
const stopMs = 60_000

/** The catalog of a program that does not run, for a command that fills it. */
export interface CatalogAtRest {
  readonly shared: SharedMemory
  /** The one writer, on a thread of its own. */
  readonly keeper: Address<CatalogRequest, CatalogReply>
  readonly environment: Environment
  readonly generations: Generations
  readonly index: ChainIndex
  /** Ends the thread, and gives DATA_PATH back. */
  close(): Promise<void>
}

/** Claims DATA_PATH and opens its catalog. Rejects where another process has it or it cannot be opened, and claims nothing. */
export async function openCatalogAtRest(config: Config, log: Log): Promise<CatalogAtRest> {
  const { root, catalog } = folders(config)
  const claim = await claimDataFolder(root, log)
  try {
    const shared = sharedMemory(config)
    const options = { ...catalogThread(config, shared), isBeside: false }
    const thread = await startThread('catalog', 'catalog', options)
    const keeper = addressOf<CatalogRequest, CatalogReply>(thread.connect(), mailboxMax)
    const { environment } = openCatalogTables(catalog)
    const generations = new Generations(shared.generations)
    const index = new ChainIndex(environment, generations)
    const close = async (): Promise<void> => {
      await thread.stop(stopMs)
      await environment.close()
      await claim.release()
    }
    return { shared, keeper, environment, generations, index, close }
  } catch (error) {
    await claim.release()
    throw error
  }
}
