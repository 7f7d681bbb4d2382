import type { Id } from '../format/id.js'
import { shardOf } from './generations.js'
import type { IndexOutcome } from './index-protocol.js'

/** What several requests did together. */
export function sumOfOutcomes(outcomes: readonly (IndexOutcome | undefined)[]): IndexOutcome {
  const sum = { added: 0, known: 0, skipped: 0, removed: 0 }
  for (const one of outcomes) {
    sum.added += one?.added ?? 0
    sum.known += one?.known ?? 0
    sum.skipped += one?.skipped ?? 0
    sum.removed += one?.removed ?? 0
  }
  return sum
}

/** What a commit touched: ids that were named, and shards of ids that came by the thousand. */
export class CommitChanges {
  readonly ids = new Set<Id>()
  readonly shards: number[] = []
  readonly #marks = new Uint8Array(2 ** 16)
  /** Takes the 32 bytes of an id. */
  readonly row = (id: Uint8Array): void => this.shard(shardOf(id))

  shard(shard: number): void {
    if (this.#marks[shard] !== 0) return
    this.#marks[shard] = 1
    this.shards.push(shard)
  }
}
