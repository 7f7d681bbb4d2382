import type { Cell } from '../actor/shared.js'
import type { Id } from '../format/id.js'

/** Shards by the first 16 bits of the id; cell 0 in front of them counts every commit. */
export const shards = 65_536

/** The cell behind the shards says whether a damaged page was met. */
const damageCell = 1 + shards

/** Bytes of shared memory that the table of generations takes. */
export const generationBytes: number = (damageCell + 1) * 4

/**
 * Numbers that tell readers on every thread that something changed, without a message. One thread writes, after its
 * commit; a reader takes the number first and reads afterwards, so that it can only be early, never late.
 */
export class Generations {
  readonly #cells: Int32Array

  /** `memory` has `generationBytes` bytes and is the same on every thread. */
  constructor(readonly memory: SharedArrayBuffer = new SharedArrayBuffer(generationBytes)) {
    this.#cells = new Int32Array(memory)
    if (this.#cells.length !== damageCell + 1)
      throw new RangeError('the table of generations has another size')
  }

  /** Number of commits so far, modulo 2^32. */
  get commits(): number {
    return Atomics.load(this.#cells, 0)
  }

  /** The generation of the shard that `id` belongs to. */
  of(id: Id): number {
    return Atomics.load(this.#cells, this.#cell(id))
  }

  /** Where that stands. */
  cellOf(id: Id): Cell {
    return { cells: this.#cells, at: this.#cell(id) }
  }

  /**
   * The shards whose generation differs from the one in `seen`, which has a place for each shard, in runs, and takes over what is
   * found. What is read of them afterwards is as new as that, or newer.
   */
  changed(seen: Int32Array): ShardRun[] {
    const runs: { start: number; end: number }[] = []
    for (let shard = 0; shard < shards; shard += 1) {
      const generation = Atomics.load(this.#cells, 1 + shard)
      if (seen[shard] === generation) continue
      seen[shard] = generation
      const last = runs.at(-1)
      if (last !== undefined && last.end === shard) last.end = shard + 1
      else runs.push({ start: shard, end: shard + 1 })
    }
    return runs
  }

  /** Says that a commit is done which touched these ids and shards (`shardOf`). Only the keeper calls this. */
  commit(ids: Iterable<Id>, touched: Iterable<number> = []): void {
    Atomics.add(this.#cells, 0, 1)
    for (const shard of touched) Atomics.add(this.#cells, 1 + shard, 1)
    for (const id of ids) Atomics.add(this.#cells, this.#cell(id), 1)
  }

  /** Whether any thread met a damaged page of the catalog's database since the start. */
  get isDamaged(): boolean {
    return Atomics.load(this.#cells, damageCell) !== 0
  }

  /** How often threads met one, modulo 2^32 (and never 0 again). */
  get damages(): number {
    return Atomics.load(this.#cells, damageCell)
  }

  /** Says that a read or a commit met a damaged page. Any thread may call this. */
  reportDamage(): void {
    if (Atomics.add(this.#cells, damageCell, 1) === -1) Atomics.store(this.#cells, damageCell, 1)
  }

  /** Three characters of base64url carry 18 bits; the upper 16 choose the shard. */
  #cell(id: Id): number {
    const bits = (sextet(id, 0) << 12) | (sextet(id, 1) << 6) | sextet(id, 2)
    return 1 + (bits >> 2)
  }
}

/** Shards in a row, from `start` to before `end`. */
export interface ShardRun {
  readonly start: number
  readonly end: number
}

/** The shard of the id with these 32 bytes. */
export function shardOf(id: Uint8Array): number {
  return ((id[0] ?? 0) << 8) | (id[1] ?? 0)
}

const sextets = new Uint8Array(128)
for (const [value, letter] of [
  ...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_',
].entries()) {
  sextets[letter.charCodeAt(0)] = value
}

function sextet(id: Id, at: number): number {
  return sextets[id.charCodeAt(at)] ?? 0
}
