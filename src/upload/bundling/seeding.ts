import type { FairSlots } from '../../actor/fair-slots.js'
import type { Broadcast } from '../../chain/broadcast.js'
import { encodeBase64url } from '../../format/base64url.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { equalBytes, sha256 } from '../../proof/digest.js'
import type { MerkleTree } from '../../proof/merkle.js'
import type { BundleData } from './bundle-data.js'

const none = new Uint8Array(0)

export interface SeedingRules {
  readonly broadcast: Pick<Broadcast, 'chunk'>
  /** Chunks posted at once. */
  readonly atOnce: number
  /** Each chunk has a slot of these. */
  readonly turns: { readonly slots: FairSlots; readonly client: string }
  /** Number of the first chunk. */
  readonly from: number
  /** Nothing more is to be posted. */
  readonly isOver: () => boolean
  /** One node is enough for a chunk where the others refuse it, or are away. */
  readonly isOneEnough: boolean
  /** Whether a chunk is to be posted. */
  readonly isWanted: (index: number) => boolean
  /** Called with each chunk that enough nodes have taken, and their names. `to`: all wanted ones before this number were. */
  readonly onTaken: (to: number, nodes: readonly string[]) => void
}

/**
 * Posts the wanted chunks of a bundle; fewer where `isOver` returns true meanwhile. A refusal: one was not taken by enough nodes.
 * Rejects where the data cannot be read.
 */
export async function postChunks(
  data: BundleData,
  tree: MerkleTree,
  { broadcast, atOnce, turns, from, isOneEnough, isOver, isWanted, onTaken }: SeedingRules,
): Promise<Refusal | undefined> {
  let refusal: Refusal | undefined
  const failures: unknown[] = []
  const underWay = new Set<Promise<void>>()
  /** Numbers of those that were not taken, from the lowest. */
  const left = new Set<number>()
  let next = from
  for await (const { index, bytes } of data.chunks(from)) {
    if (refusal !== undefined || failures.length > 0 || isOver()) break
    next = index + 1
    if (!isWanted(index)) continue
    left.add(index)
    const slot = await turns.slots.wait(turns.client)
    if (isRefusal(slot)) throw new Error(slot.message)
    const sent = postChunk(data.sizeBytes, tree, index, bytes, { broadcast, isOneEnough })
      .then((taken) => {
        if (isRefusal(taken)) {
          refusal ??= taken
          return
        }
        left.delete(index)
        const [lowest = next] = left
        onTaken(lowest, taken)
      })
      // Nobody may wait for it at that moment, and a rejection without that ends the thread.
      .catch((error: unknown) => {
        failures.push(error)
      })
      .finally(() => {
        slot()
        underWay.delete(sent)
      })
    underWay.add(sent)
    if (underWay.size >= atOnce) await Promise.race(underWay)
  }
  await Promise.all(underWay)
  if (failures.length > 0) throw failures[0]
  return refusal
}

async function postChunk(
  sizeBytes: number,
  tree: MerkleTree,
  index: number,
  bytes: Uint8Array,
  { broadcast, isOneEnough }: Pick<SeedingRules, 'broadcast' | 'isOneEnough'>,
): Promise<readonly string[] | Refusal> {
  const { hash, end } = tree.leaves[index] ?? { hash: none, end: 0 }
  // Wrong bytes could not be proven: the reason is here, and not at a node.
  if (!equalBytes(sha256(bytes), hash))
    return refuse('forged', 'self', `chunk ${index} is not what was signed: the log has changed`)
  const json = JSON.stringify({
    data_root: encodeBase64url(tree.root),
    data_size: String(sizeBytes),
    data_path: encodeBase64url(tree.path(index)),
    offset: String(end - 1),
    chunk: encodeBase64url(bytes),
  })
  const posted = await broadcast.chunk(json)
  const takers = posted.results.flatMap(({ success, peer }) => (success ? [peer] : []))
  // A node that is only slow holds up others: all chunks for one taker would take hours of their turns.
  const isOwed = takers.length > 0 && posted.results.every(({ timedOut }) => !timedOut)
  if (posted.enough || (isOneEnough && isOwed)) return takers
  const statuses = posted.results.map(({ peer, statusCode }) => `${peer}: ${statusCode}`).join(', ')
  return { refused: 'upstream', fault: 'upstream', message: `chunk ${index} was not taken (${statuses})` }
}
