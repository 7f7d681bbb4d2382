import { type Id, idBytes, idOfBytes } from '../../format/id.js'
import { tryWrite } from '../../store/disk-error.js'
import type { Environment, Table } from '../../store/lmdb.js'
import type { GroupPlace } from './group-format.js'

export interface NeighbourEntry extends GroupPlace {
  readonly id: Id
}

/** Where an upload of another machine lies. */
export interface NeighbourPlace extends GroupPlace {
  readonly group: string
}

/**
 * Behind the names of the tables: all of them change their names with the layout of one. A known group is not read again, so
 * its items would be unknown if `places` alone began empty.
 */
const layout = '-2'
/** Tables of earlier releases, which are emptied: all in them is read anew from the store. */
const earlierTables = ['groups', 'names', 'items', 'places', 'members']

const [idLength, numberBytes] = [32, 4] as const
const placeBytes = 6 + 6 + 4

function numberKey(number: number): Buffer {
  const key = Buffer.alloc(numberBytes)
  key.writeUInt32BE(number)
  return key
}

/** All places of an item, the oldest group that was read here first. */
function placesOf(id: Id): { readonly start: Buffer; readonly end: Buffer } {
  const start = Buffer.from(idBytes(id))
  return { start, end: Buffer.concat([start, Buffer.alloc(numberBytes + 1, 255)]) }
}

/** What this machine knows of the uploads that others keep in the store. All of it can be read anew from the store. */
export class NeighbourRecords {
  /** Group -> its number here. */
  readonly #groups: Table
  /** Number -> group. */
  readonly #names: Table
  /**
   * Id, number -> offset u48, size u48, bytes before the payload u32, content type. Several groups have an item where its
   * uploader got no answer and repeated it: each counts until it is gone.
   */
  readonly #items: Table
  /** Number, id -> nothing. */
  readonly #members: Table

  constructor(private readonly environment: Environment) {
    const table = (name: string): Table => environment.table(`${name}${layout}`)
    this.#groups = table('groups')
    this.#names = table('names')
    this.#items = table('places')
    this.#members = table('members')
    const earlier = earlierTables.map((name) => environment.table(name)).filter((one) => one.count() > 0)
    if (earlier.length === 0) return
    // A disk that refuses keeps them until the next start.
    tryWrite(() =>
      environment.write(() => {
        for (const one of earlier) one.clear()
      }),
    )
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
    for (const { key, value } of this.#items.span(placesOf(id))) {
      const name = this.#names.get(key.subarray(idLength))
      if (name === undefined) continue
      const row = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
      return {
        group: Buffer.from(name).toString('latin1'),
        offset: row.readUIntLE(0, 6),
        sizeBytes: row.readUIntLE(6, 6),
        headerSize: row.readUInt32LE(12),
        contentType: row.toString('latin1', placeBytes),
      }
    }
    return undefined
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
    row.writeUIntLE(offset, 0, 6)
    row.writeUIntLE(sizeBytes, 6, 6)
    row.writeUInt32LE(headerSize, 12)
    row.set(type, placeBytes)
    this.#items.put(Buffer.concat([idBytes(id), key]), row)
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
          this.#items.remove(Buffer.concat([member.subarray(numberBytes), key]))
          this.#members.remove(member)
        }
        this.#names.remove(key)
        this.#groups.remove(Buffer.from(name, 'latin1'))
      }
    })
  }

  /** The item of `group` is not what its directory says: it is not looked for there again. */
  forget(id: Id, group: string): void {
    const key = this.#groups.get(Buffer.from(group, 'latin1'))
    if (key !== undefined) this.environment.write(() => this.#items.remove(Buffer.concat([idBytes(id), key])))
  }

  /** Ids of a group, for tests and for people. */
  ids(group: string): Id[] {
    const key = this.#groups.get(Buffer.from(group, 'latin1'))
    if (key === undefined) return []
    const end = numberKey(Buffer.from(key).readUInt32BE(0) + 1)
    return [...this.#members.keys({ start: key, end })].map((one) => idOfBytes(one.subarray(numberBytes)))
  }
}
