import { processorTime } from '../actor/processor-time.js'
import { type ShardRun, shardOf, shards } from '../catalog/generations.js'
import { type Id, idBytes } from '../format/id.js'
import { isRefusal } from '../format/refusal.js'
import { tryWrite } from '../store/disk-error.js'
import type { AgendaMember } from './proof-agenda.js'
import { priorities } from './proof-records.js'
import type { VerifierParts } from './verifier-parts.js'

/** Roots that are compared with the index in one go. */
const rootsMax = 100

/** In the first round all shards count as changed: something has been indexed while no process ran. */
const unseen = -1

type Parts = Pick<VerifierParts, 'agenda' | 'tip' | 'catalog' | 'budget' | 'clock'>

/**
 * What the index has learned of the roots that contents wait for. After a block those roots are compared with it in whose shard
 * of ids something has changed: what that costs is bounded by what was indexed, and not by what waits.
 */
export class IndexNews {
  #growths = -1
  readonly #seen = new Int32Array(shards).fill(unseen)
  /** Shards that are left in this round, the last ones first. */
  #left: ShardRun[] = []
  /** Where in the last run the next step begins. */
  #from: Uint8Array | undefined

  constructor(private readonly parts: Parts) {}

  /** There is something left to compare, or a block has come. */
  get isNew(): boolean {
    return this.#left.length > 0 || this.parts.tip.growths !== this.#growths
  }

  /** Compares some roots, where there is a budget. What the index has is due now; an item waits for the root that holds it. */
  hear(): void {
    const { budget, tip, catalog } = this.parts
    if (!this.isNew || budget.waitMs > 0) return
    const beganMs = processorTime.monotonic()
    if (this.#left.length === 0) {
      this.#growths = tip.growths
      this.#left = catalog.changedShards(this.#seen).reverse()
    }
    this.#step()
    budget.spend(processorTime.monotonic() - beganMs)
  }

  #step(): void {
    const { agenda, clock, catalog } = this.parts
    const heard: Id[] = []
    const moved: AgendaMember[] = []
    for (let looked = 0; looked < rootsMax; ) {
      const run = this.#left.at(-1)
      if (run === undefined) break
      const end = run.end < shards ? boundOf(run.end) : undefined
      const roots = agenda.waiting(this.#from ?? boundOf(run.start), end, rootsMax)
      // A run without roots costs a search in the agenda, too.
      looked += 1 + roots.length
      for (const { rootId, root } of roots) {
        if (root.isIndexed) continue
        const known = catalog.attributes(rootId)
        const holder = known?.place?.rootId
        if (holder !== undefined && holder !== rootId)
          moved.push({ id: rootId, rootId: holder, hints: {}, priority: priorities.listed })
        else if (known?.height !== undefined) heard.push(rootId)
      }
      const last = roots.at(-1)
      const isOver = roots.length < rootsMax || last === undefined
      if (isOver) this.#left.pop()
      this.#from = isOver ? undefined : Buffer.concat([idBytes(last.rootId), Buffer.from([0])])
    }
    const now = clock.now()
    const written = tryWrite(() => {
      agenda.indexed(heard, now)
      agenda.add(moved, () => now, now)
    })
    if (!isRefusal(written)) return
    // The disk refuses: these shards are compared again after the next block.
    for (const id of [...heard, ...moved.map(({ id }) => id)]) this.#seen[shardOf(idBytes(id))] = unseen
  }
}

/** The lowest id of a shard begins so. */
function boundOf(shard: number): Uint8Array {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16BE(shard)
  return bytes
}
