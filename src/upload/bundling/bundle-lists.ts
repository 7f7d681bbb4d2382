import { type Id, idBytes, idOfBytes } from '../../format/id.js'
import type { Environment, Table } from '../../store/lmdb.js'

/** The youngest bundles, for people. */
export const recentMax = 50

type ListName = 'open' | 'recent'

const marks: Readonly<Record<ListName, number>> = { open: 1, recent: 2 }
const countKey = Uint8Array.of(0)
const none = new Uint8Array(0)

function keyOf(list: ListName, id: Id): Buffer {
  return Buffer.concat([Uint8Array.of(marks[list]), idBytes(id)])
}

/**
 * Ids of the bundles that a start has to read: records of bundles are never removed, and each names up to ten thousand items.
 * Only inside a `write` of the environment, but for `ids`.
 */
export class BundleLists {
  readonly #table: Table

  constructor(environment: Environment) {
    this.#table = environment.table('bundle-lists')
  }

  /** All listed ones. Undefined: others have written records meanwhile, of which there are `count`. */
  ids(count: number): Iterable<Id> | undefined {
    if (this.#count() !== count) return undefined
    const ids = [...this.#table.keys({ start: Uint8Array.of(1) })].map((key) => idOfBytes(key.subarray(1)))
    return new Set(ids)
  }

  /** How many records there were at the last change. */
  #count(): number | undefined {
    const found = this.#table.get(countKey)
    return found === undefined ? undefined : Number(Buffer.from(found).toString())
  }

  #putCount(records: number): void {
    this.#table.put(countKey, Buffer.from(String(records)))
  }

  put(list: ListName, id: Id, isListed: boolean): void {
    if (isListed) this.#table.put(keyOf(list, id), none)
    else this.#table.remove(keyOf(list, id))
  }

  /** There is one record more. */
  add(): void {
    this.#putCount((this.#count() ?? 0) + 1)
  }

  replace(open: Iterable<Id>, recent: Iterable<Id>, records: number): void {
    this.#table.clear()
    for (const id of open) this.put('open', id, true)
    for (const id of recent) this.put('recent', id, true)
    this.#putCount(records)
  }
}
