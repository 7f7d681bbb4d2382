import { FairSlots } from '../actor/fair-slots.js'
import type { Chain } from '../chain/chain.js'
import { Chunks, OffsetAwareChunks } from './chunks.js'
import { Items } from './items.js'
import type { LocationLimits } from './locate.js'
import type { RootLookup } from './root-lookup.js'
import type { Source } from './source.js'
import { Transactions } from './transactions.js'
import { TxData } from './tx-data.js'

export interface ChunkOptions {
  /** Chunks asked at once for one payload. */
  readonly aheadMax: number
  /** Chunks asked at once, all payloads together. */
  readonly concurrencyMax: number
}

/** What can be brought from nodes of the base layer, and what was built on the way. */
export interface ChainSources {
  readonly transactions: Transactions
  readonly chunks: Chunks
  /** `chunks`, `chunks-offset-aware` and `tx-data`. */
  readonly sources: readonly Source[]
}

/** Builds the sources that ask nodes. */
export function chainSources(
  chain: Chain,
  chunkOptions: ChunkOptions,
  location: LocationLimits,
  roots?: RootLookup,
): ChainSources {
  const { aheadMax, concurrencyMax } = chunkOptions
  const transactions = new Transactions(chain)
  const chunks = new Chunks(transactions, { chain, turns: FairSlots.unbounded(concurrencyMax), aheadMax })
  const items = new Items('chunks-offset-aware', chunks.openRoot, location)
  const aware = new OffsetAwareChunks(items, chunks, roots)
  return { transactions, chunks, sources: [chunks, aware, new TxData(transactions, chain)] }
}
