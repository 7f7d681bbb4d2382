import { type Id, idBytes } from '../format/id.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import type { Block, Chain, TransactionOffset } from './chain.js'

/** A block has up to 1,000 transactions: ten questions find one, some more step over those without data. */
const probesMax = 24

export interface PlacedTransaction {
  readonly id: Id
  readonly place: TransactionOffset
}

/**
 * Which transaction of a block holds weave byte `offset`. Data lies in the order of the ids' bytes, so nodes are asked for places
 * by bisection; a block with transactions of both formats is in order only within each of them, and there the search may fail.
 * Undefined: not found within the bound. The places are the nodes' word.
 */
export async function transactionAt(
  chain: Pick<Chain, 'transactionOffset'>,
  block: Block,
  offset: number,
  signal: AbortSignal,
): Promise<PlacedTransaction | Refusal | undefined> {
  const ids = block.transactionIds
    .map((id) => ({ id, key: idBytes(id) }))
    .sort((a, b) => Buffer.compare(a.key, b.key))
    .map(({ id }) => id)
  for (let probe = 0; probe < probesMax && ids.length > 0; probe += 1) {
    const middle = ids.length >> 1
    const id = ids[middle] as Id
    const place = await chain.transactionOffset(id, signal)
    if (isRefusal(place)) {
      if (place.refused !== 'unknown') return place
      // It has no data, and so no place in the order.
      ids.splice(middle, 1)
    } else if (place.end < offset) ids.splice(0, middle + 1)
    else if (place.start > offset) ids.splice(middle)
    else return { id, place }
  }
  return undefined
}
