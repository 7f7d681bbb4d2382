import { type Id, idBytes, idOfBytes } from '../../format/id.js'
import type { Environment, Table } from '../../store/lmdb.js'
import type { GroupPlace } from './group-format.js'

export interface NeighbourEntry extends GroupPlace {
  readonly id: Id
}

/** Where an upload of another machine lies. */
export interface NeighbourPlace extends GroupPlace {
  readonly group: string
}

const numberBytes = 4
const placeBytes = numberBytes + 6 + 6 + 4

function numberKey(number: number): Buffer {
  const key = Buffer.alloc(numberBytes)
  key.writeUInt32BE(number)
  return key
}

/** What this machine knows of the uploads that others keep in the store. All of it can be read anew from the store. */
export class NeighbourRecords {
  /** Group -> its number here. */
  readonly #groups: Table
  /** Number -> group. */
  readonly #names: Table
  /** Id -> number, offset u48, size u48, bytes before the payload u32, content type. */
  readonly #items: Table
  /** Number, id -> nothing. */
  readonly #members: Table

  constructor(private readonly environment: Environment) {
    this.#groups = environment.table('groups')
    this.#names = environment.table('names')
    this.#items = environment.table('items')
    this.#members = environment.table('members')
  }

  get count(): number {
    return this.#items.count()
  }

  has(group: string): boolean {
    return this.#groups.get(Buffer.from(group, 'latin1')) !== undefined
  }

  /** All groups, in the order of their names. */
  *groups(): Generator<string> {
    for (let start: Buffer = Buffer.of(0); ; ) {
      const [key] = this.#groups.keys({ start, limit: 1 })
      if (key === undefined) return
      yield Buffer.from(key).toString('latin1')
      start = Buffer.concat([key, Buffer.of(0)])
    }
  }

  find(id: Id): NeighbourPlace | undefined {
    const found = this.#items.get(idBytes(id))
    if (found === undefined) return undefined
    const row = Buffer.from(found.buffer, found.byteOffset, found.byteLength)
    const name = this.#names.get(row.subarray(0, numberBytes))
    if (name === undefined) return undefined
    return {
      group: Buffer.from(name).toString('latin1'),
      offset: row.readUIntLE(numberBytes, 6),
      sizeBytes: row.readUIntLE(numberBytes + 6, 6),
      headerSize: row.readUInt32LE(numberBytes + 12),
      contentType: row.toString('latin1', placeBytes),
    }
  }

  /** Takes groups in, in one transaction. Throws where the disk refuses. */
  add(groups: readonly { readonly name: string; readonly entries: readonly NeighbourEntry[] }[]): void {
    this.environment.write(() => {
      const [last] = [...this.#names.keys({ backwards: true, limit: 1 })]
      let number = last === undefined ? 0 : Buffer.from(last).readUInt32BE(0)
      for (const { name, entries } of groups) {
        if (this.has(name)) continue
        number += 1
        const key = numberKey(number)
        this.#groups.put(Buffer.from(name, 'latin1'), key)
        this.#names.put(key, Buffer.from(name, 'latin1'))
        for (const entry of entries) this.#put(key, entry)
      }
    })
  }

  #put(key: Buffer, { id, offset, sizeBytes, headerSize, contentType }: NeighbourEntry): void {
    const type = Buffer.from(contentType, 'latin1')
    const row = Buffer.alloc(placeBytes + type.length)
    row.set(key, 0)
    row.writeUIntLE(offset, numberBytes, 6)
    row.writeUIntLE(sizeBytes, numberBytes + 6, 6)
    row.writeUInt32LE(headerSize, numberBytes + 12)
    row.set(type, placeBytes)
    this.#items.put(idBytes(id), row)
    this.#members.put(Buffer.concat([key, idBytes(id)]), Buffer.alloc(0))
  }

  /** The store has these groups no more. */
  drop(groups: readonly string[]): void {
    this.environment.write(() => {
      for (const name of groups) {
        const key = this.#groups.get(Buffer.from(name, 'latin1'))
        if (key === undefined) continue
        const end = numberKey(Buffer.from(key).readUInt32BE(0) + 1)
        for (const member of [...this.#members.keys({ start: key, end })]) {
          const id = member.subarray(numberBytes)
          // A later group may have the item, too.
          const row = this.#items.get(id)
          if (row !== undefined && Buffer.from(row.subarray(0, numberBytes)).equals(key))
            this.#items.remove(id)
          this.#members.remove(member)
        }
        this.#names.remove(key)
        this.#groups.remove(Buffer.from(name, 'latin1'))
      }
    })
  }

  /** The item of `group` is not what its directory says: it is not looked for there again. */
  forget(id: Id, group: string): void {
    if (this.find(id)?.group === group) this.environment.write(() => this.#items.remove(idBytes(id)))
  }

  /** Ids of a group, for tests and for people. */
  ids(group: string): Id[] {
    const key = this.#groups.get(Buffer.from(group, 'latin1'))
    if (key === undefined) return []
    const end = numberKey(Buffer.from(key).readUInt32BE(0) + 1)
    return [...this.#members.keys({ start: key, end })].map((one) => idOfBytes(one.subarray(numberBytes)))
  }
}
