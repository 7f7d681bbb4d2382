import { present, type Table } from '../../store/lmdb.js'

/** What is to become of a record: `open` ones expire, of `owed` ones money is still under way, the others are forgotten. */
export type DueKind = 'open' | 'owed' | 'finalized' | 'failed'

/** Where a record stands in the order. */
export interface DuePlace {
  readonly kind: DueKind
  readonly dueMs: number
  readonly id: string
}

/** The number of each kind, as it stands in the keys of the order. */
export const kindNumbers: Readonly<Record<DueKind, number>> = { open: 0, owed: 1, finalized: 2, failed: 3 }

/** Ids of records by kind and by the time at which each is due: those that are due are found without a look at the others. */
export class DueRecords {
  constructor(private readonly table: Table) {}

  get count(): number {
    return this.table.count()
  }

  has(place: DuePlace): boolean {
    return this.table.get(keyOf(place)) !== undefined
  }

  /** Only inside a `write` of the environment, as all below. */
  put(place: DuePlace): void {
    this.table.put(keyOf(place), present)
  }

  remove(place: DuePlace): void {
    this.table.remove(keyOf(place))
  }

  clear(): void {
    for (const key of [...this.table.keys({})]) this.table.remove(key)
  }

  /** Ids of one kind that are due until `untilMs` (inclusive), the first due first. */
  until(kind: DueKind, untilMs: number, limit: number): string[] {
    const start = keyOf({ kind, dueMs: 0, id: '' })
    const end =
      untilMs === Infinity ? Buffer.of(kindNumbers[kind] + 1) : keyOf({ kind, dueMs: untilMs + 1, id: '' })
    return [...this.table.keys({ start, end, limit })].map((key) => Buffer.from(key.subarray(9)).toString())
  }
}

/** One byte of the kind, milliseconds as eight (big endian), the id. */
function keyOf({ kind, dueMs, id }: DuePlace): Buffer {
  const key = Buffer.alloc(9 + Buffer.byteLength(id))
  key.writeUInt8(kindNumbers[kind])
  key.writeBigUInt64BE(BigInt(Math.max(0, Math.floor(dueMs))), 1)
  key.write(id, 9)
  return key
}
