import type { Cell } from '../actor/shared.js'

/** A number in shared memory, and the bounds within which something holds. */
export type Bounded = readonly [cell: Cell, least: number, most: number]

/** Names whose hashes fall together have one number: a change of one is then taken for a change of the other. */
const marks = 4096
const int32Max = 2 ** 31 - 1

/**
 * Numbers that say whether what was remembered of a name still counts, in memory that code beside JavaScript can read. The first
 * is the time in seconds, the others change whenever something is learned of a name.
 */
export class NameMarks {
  readonly #cells = new Int32Array(new SharedArrayBuffer(4 * (1 + marks)))

  /** To be called each second. */
  tick(monotonicMs: number): void {
    this.#cells[0] = Math.floor(monotonicMs / 1000)
  }

  /** Something was learned of this name. */
  learned(full: string): void {
    const at = placeOf(full)
    this.#cells[at] = ((this.#cells[at] ?? 0) + 1) | 0
  }

  /** What must hold for what is remembered of a name to count until `untilMs`. Undefined: not for a second more. */
  watch(full: string, untilMs: number): readonly Bounded[] | undefined {
    // The time may be behind by a second, and its second may be nearly over.
    const last = Math.min(Math.floor(untilMs / 1000) - 2, int32Max)
    if (!(last >= (this.#cells[0] ?? 0))) return undefined
    const at = placeOf(full)
    const value = this.#cells[at] ?? 0
    return [
      [{ cells: this.#cells, at: 0 }, 0, last],
      [{ cells: this.#cells, at }, value, value],
    ]
  }
}

function placeOf(full: string): number {
  let hash = 0
  for (let at = 0; at < full.length; at += 1) hash = (Math.imul(hash, 31) + full.charCodeAt(at)) | 0
  return 1 + ((hash ^ (hash >>> 15)) & (marks - 1))
}
