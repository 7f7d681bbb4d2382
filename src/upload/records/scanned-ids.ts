import { type Id, idBytes, idOfBytes } from '../../format/id.js'
import type { Environment, Table } from '../../store/lmdb.js'

const none = new Uint8Array(0)

/** An item that lies in an uploaded bundle. */
export interface ScannedId {
  readonly id: Id
  /** The uploaded item around it, at the outermost level. */
  readonly bundle: Id
}

/**
 * Ids of all items in uploaded bundles, at every level: they were paid for with the bundle, whether it was looked into or not. A
 * row has the item's id and that of the bundle, 64 bytes. It is written before the bundle is accepted, so it counts only while
 * the bundle is known.
 */
export class ScannedIds {
  readonly #bundles: Table
  readonly #unnoted: Table

  constructor(environment: Environment) {
    this.#bundles = environment.table('noted')
    this.#unnoted = environment.table('unnoted')
  }

  /** The bundle that an item was found in first; undefined: in none. */
  bundleOf(id: Id): Id | undefined {
    const found = this.#bundles.get(idBytes(id))
    return found === undefined ? undefined : idOfBytes(found)
  }

  /** Only inside a `write` of the environment, as all below. `isKnown`: whether an earlier bundle still counts. */
  put(ids: readonly Uint8Array[], bundle: Id, isKnown: (bundle: Id) => boolean): void {
    const value = idBytes(bundle)
    for (const id of ids) {
      if (this.#bundles.add(id, value)) continue
      const before = this.#bundles.get(id)
      if (before !== undefined && !isKnown(idOfBytes(before))) this.#bundles.put(id, value)
    }
  }

  remove(id: Id): void {
    this.#bundles.remove(idBytes(id))
  }

  /** Rows that this bundle has written. */
  removeOf(ids: readonly Uint8Array[], bundle: Id): void {
    const value = idBytes(bundle)
    for (const id of ids) {
      const found = this.#bundles.get(id)
      if (found !== undefined && Buffer.compare(found, value) === 0) this.#bundles.remove(id)
    }
  }

  /** An accepted bundle is to be read, because its items may not be noted. */
  wait(bundle: Id): void {
    this.#unnoted.put(idBytes(bundle), none)
  }

  scanned(bundle: Id): void {
    this.#unnoted.remove(idBytes(bundle))
  }

  /** Whether some accepted bundle has items that may not be noted. */
  get isBehind(): boolean {
    return this.#unnoted.count() > 0
  }

  /** Some bundles that wait. */
  waiting(limit: number): Id[] {
    return [...this.#unnoted.keys({ limit })].map((key) => idOfBytes(key))
  }

  /** Some rows behind this one, in the order of their ids. */
  behind(after: Uint8Array | undefined, limit: number): ScannedId[] {
    const start = after && Buffer.concat([after, Uint8Array.of(0)])
    return this.#bundles
      .from(start, limit)
      .map(({ key, value }) => ({ id: idOfBytes(key), bundle: idOfBytes(value) }))
  }
}
