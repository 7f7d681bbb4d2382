import type { ChainIndex } from '../catalog/index-reader.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import type { ClickhouseClient } from './clickhouse-client.js'
import type { StableHeights } from './heights.js'
import { RowBinaryFault, RowBinaryReader } from './row-binary.js'
import { blockParts } from './stable-row.js'

/** The chain that this machine follows. */
export interface FollowedChain {
  readonly index: Pick<ChainIndex, 'block' | 'known' | 'topHeight'>
  /** Blocks at the top that may still be replaced. */
  readonly forkDepth: number
}

const rowBytes = 1000
const blockIdMaxBytes = 64
const another = refuse('upstream', 'upstream', 'ClickHouse has the blocks of another chain: it is not used')

/**
 * A refusal where the highest row that ClickHouse has of these heights lies in another block than the index here has: it is the
 * database of another network. Where one of the two has nothing to compare, both count as the same. Never rejects for what the
 * server does.
 */
export async function sameChain(
  client: Pick<ClickhouseClient, 'ask'>,
  { index, forkDepth }: FollowedChain,
  { from, to }: StableHeights,
): Promise<'same' | Refusal> {
  const stable = (index.known(() => index.topHeight()) ?? -1) - forkDepth
  if (stable < from) return 'same'
  const where = `height BETWEEN ${from} AND ${Math.min(to, stable)}`
  const sql = `SELECT height, block_indep_hash FROM transactions WHERE ${where} ORDER BY height DESC LIMIT 1 FORMAT RowBinary`
  const bytes = await client.ask(sql, rowBytes)
  if (isRefusal(bytes)) return bytes
  try {
    const read = new RowBinaryReader(bytes)
    if (!read.more) return 'same'
    const [height, there] = [read.u32(), read.bytes(blockIdMaxBytes)]
    const here = index.known(() => index.block(height))
    const isKnown = here !== undefined && there.length > 0
    return isKnown && Buffer.compare(blockParts(here).id, there) !== 0 ? another : 'same'
  } catch (error) {
    if (!(error instanceof RowBinaryFault) && !(error instanceof RangeError)) throw error
    return refuse('upstream', 'upstream', `ClickHouse gave no block: ${error.message}`)
  }
}
