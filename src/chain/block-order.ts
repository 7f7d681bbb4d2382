import type { Requester } from '../actor/requester.js'
import { type Id, idBytes } from '../format/id.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import type { Block, Chain, TransactionOffset } from './chain.js'

/**
 * A block has up to 1,000 transactions: bisection takes ten requests, and one more for each transaction without data
 * that it meets.
 */
const probesMax = 24
/** Requests about single transactions where bisection did not find it. */
const scannedMax = 256
const scannedAtOnce = 16

export interface LocatedTransaction {
  readonly id: Id
  readonly place: TransactionOffset
}

/**
 * The transaction of a block that holds weave byte `offset`. Data is in the order of the ids' bytes, so places are requested from
 * nodes by bisection. In a block of both formats those of format 1 come first. Where bisection fails because of that, the others
 * are requested one by one. Undefined: not found within the bounds. The places are as stated by nodes, not proven.
 */
export async function transactionAt(
  chain: Pick<Chain, 'transactionOffset'>,
  block: Block,
  offset: number,
  requester: Requester,
): Promise<LocatedTransaction | Refusal | undefined> {
  const sorted = block.transactionIds
    .map((id) => ({ id, key: idBytes(id) }))
    .sort((a, b) => Buffer.compare(a.key, b.key))
    .map(({ id }) => id)
  const left = [...sorted]
  const leading = new Set<Id>()
  for (let probe = 0; probe < probesMax && left.length > 0; probe += 1) {
    const middle = left.length >> 1
    const id = left[middle] as Id
    leading.add(id)
    const place = await chain.transactionOffset(id, requester)
    if (isRefusal(place)) {
      if (place.refused !== 'unknown') return place
      // It has no data, so it has no place in the weave.
      left.splice(middle, 1)
    } else if (place.end < offset) left.splice(0, middle + 1)
    else if (place.start > offset) left.splice(middle)
    else return { id, place }
  }
  const others = sorted.filter((id) => !leading.has(id))
  return scanned(chain, others.slice(0, scannedMax), offset, requester)
}

async function scanned(
  chain: Pick<Chain, 'transactionOffset'>,
  ids: readonly Id[],
  offset: number,
  requester: Requester,
): Promise<LocatedTransaction | Refusal | undefined> {
  for (let at = 0; at < ids.length; at += scannedAtOnce) {
    const some = ids.slice(at, at + scannedAtOnce)
    const places = await Promise.all(some.map((id) => chain.transactionOffset(id, requester)))
    for (const [index, place] of places.entries()) {
      const id = some[index]
      if (id === undefined || (isRefusal(place) && place.refused === 'unknown')) continue
      if (isRefusal(place)) return place
      if (place.start <= offset && offset <= place.end) return { id, place }
    }
  }
  return undefined
}
