import { systemClock } from '../../actor/clock.js'
import { FairSlots } from '../../actor/fair-slots.js'
import type { Chain } from '../../chain/chain.js'
import type { WrittenChunks } from '../../chain/segment-chunks.js'
import type { Source } from '../source.js'
import { Chunks, OffsetAwareChunks } from './chunks.js'
import { Directories } from './directories.js'
import { firstDataWithin } from './first-data.js'
import type { LocationLimits } from './item-location.js'
import { Items } from './items.js'
import { ProvenChunks } from './proven-chunks.js'
import type { RootHeights } from './root-heights.js'
import type { RootLookup } from './root-lookup.js'
import { Transactions } from './transaction-headers.js'
import { TxData } from './tx-data.js'

export interface ChunkOptions {
  /** Chunks requested at once for one payload. */
  readonly aheadMax: number
  /** Chunks requested at once, all payloads together. */
  readonly concurrencyMax: number
  /** Bytes of proven chunks kept in memory; absent: as many as one payload needs. */
  readonly memoryMaxBytes?: number
  /** From the request for a payload to its first bytes; absent: as long as the nodes take. */
  readonly firstDataMs?: number
}

/** What one payload has on its way, and some to go back to: headers of bundles and items are read in small steps. */
const usualMemoryBytes = 4 * 1024 * 1024

/** What can be brought from nodes of the base layer, and what was built on the way. */
export interface ChainSources {
  readonly transactions: Transactions
  readonly chunks: Chunks
  readonly directories: Directories
  /** `chunks`, `chunks-offset-aware` and `tx-data`. */
  readonly sources: readonly Source[]
}

/** Builds the sources that ask nodes. `segments`: where proven chunks go that leave memory. */
export function chainSources(
  chain: Chain,
  chunkOptions: ChunkOptions,
  location: LocationLimits,
  roots?: RootLookup,
  heights?: RootHeights,
  segments?: WrittenChunks,
): ChainSources {
  const { aheadMax, concurrencyMax, memoryMaxBytes = usualMemoryBytes } = chunkOptions
  const transactions = new Transactions(chain)
  const turns = FairSlots.unbounded(concurrencyMax)
  const proven = new ProvenChunks({
    chain,
    turns,
    memoryMaxBytes,
    ...(segments === undefined ? {} : { segments }),
  })
  const chunks = new Chunks(transactions, { chunks: proven, aheadMax }, heights)
  const directories = new Directories()
  const items = new Items('chunks-offset-aware', chunks.openRoot, location, directories)
  const aware = new OffsetAwareChunks(items, chunks, roots)
  const { firstDataMs } = chunkOptions
  const inTime = (source: Source): Source =>
    firstDataMs === undefined ? source : firstDataWithin(source, firstDataMs, systemClock)
  const sources = [inTime(chunks), inTime(aware), new TxData(transactions, chain)]
  return { transactions, chunks, directories, sources }
}
