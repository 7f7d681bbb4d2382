import { type Id, idBytes, idOfBytes } from '../../format/id.js'
import { type Environment, present, type Table } from '../../store/lmdb.js'

/** Behind the name of a group, which has letters alone. */
const [gap, behindGap] = [0, 1]

function prefixOf(group: string): Buffer {
  return Buffer.concat([Buffer.from(group, 'latin1'), Buffer.of(gap)])
}

function rowKey(group: string, id: Id): Buffer {
  return Buffer.concat([prefixOf(group), idBytes(id)])
}

/**
 * Which group in the object store has which items that are needed there, and which groups are needed no more. All that writes:
 * only inside a `write` of the environment.
 */
export class StoredRows {
  /** Group, 0, id -> nothing. */
  readonly #needed: Table
  /** Group -> nothing: to be removed from the store. */
  readonly #over: Table

  constructor(environment: Environment) {
    this.#needed = environment.table('stored')
    this.#over = environment.table('stored-over')
  }

  put(group: string, id: Id): void {
    this.#needed.put(rowKey(group, id), present)
  }

  /** The item is needed there no more; with the last one of it the group is not. */
  remove(group: string, id: Id): void {
    this.#needed.remove(rowKey(group, id))
    if (!this.has(group)) this.end(group)
  }

  /** Whether an item of this group is needed. */
  has(group: string): boolean {
    for (const _ of this.ids(group, 1)) return true
    return false
  }

  *ids(group: string, limit?: number): Generator<Id> {
    const start = prefixOf(group)
    const end = Buffer.concat([Buffer.from(group, 'latin1'), Buffer.of(behindGap)])
    const some = limit === undefined ? {} : { limit }
    for (const key of this.#needed.keys({ start, end, ...some })) yield idOfBytes(key.subarray(-32))
  }

  /** Names of all groups that are needed, in their order. Rows may be written meanwhile. */
  *groups(): Generator<string> {
    for (let start: Buffer = Buffer.of(0); ; ) {
      const [key] = this.#needed.keys({ start, limit: 1 })
      if (key === undefined) return
      const group = Buffer.from(key.subarray(0, -33)).toString('latin1')
      yield group
      start = Buffer.concat([Buffer.from(group, 'latin1'), Buffer.of(behindGap)])
    }
  }

  /** The store has lost the group. */
  forget(group: string): void {
    for (const id of [...this.ids(group)]) this.#needed.remove(rowKey(group, id))
    this.#over.remove(Buffer.from(group, 'latin1'))
  }

  /** The group is to be removed. */
  end(group: string): void {
    this.#over.put(Buffer.from(group, 'latin1'), present)
  }

  /** Groups that are to be removed. */
  ended(limit: number): string[] {
    return [...this.#over.keys({ limit })].map((key) => Buffer.from(key).toString('latin1'))
  }

  isEnded(group: string): boolean {
    return this.#over.get(Buffer.from(group, 'latin1')) !== undefined
  }

  /** It was removed. */
  removed(group: string): void {
    this.#over.remove(Buffer.from(group, 'latin1'))
  }
}
