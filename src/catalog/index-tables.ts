import type { Environment, Table } from '../store/lmdb.js'

/**
 * The tables of the index: what the chain holds and where it is said. They live beside the catalog's other
 * tables.
 */
export interface IndexTables {
  readonly environment: Environment
  /** Row key (16 bytes, chain order) -> row record. */
  readonly rows: Table
  /** First 16 bytes of an id -> the first 7 bytes of its row key; the rest of that key is the id again. */
  readonly ids: Table
  /**
   * Prefix (6 bytes) and first row key (16) -> the row keys that follow: who has a tag, an owner... in chain
   * order.
   */
  readonly postings: Table
  /** Kind and bytes of a word -> its number. */
  readonly words: Table
  /** Number of a word (5 bytes) -> its kind and bytes. */
  readonly numbers: Table
  /** Number of an address -> the public key with this address. */
  readonly owners: Table
  /** Height (4 bytes) -> block record. */
  readonly blocks: Table
  /** Block id (48 bytes) -> height. */
  readonly blockIds: Table
  /** Offset of the last byte in the weave (8 bytes) -> row key of the transaction whose data ends there. */
  readonly weave: Table
  /** First seen (seconds, 4 bytes) and row key -> nothing: what is in no block yet, the oldest first. */
  readonly pending: Table
  /** Name -> value: version of the records, the last number given out. */
  readonly indexMeta: Table
}

const versionKey = Buffer.from('version')
const version = 'sluice index 1'

/** The index in this environment. Throws where it was written by a version that keeps other records. */
export function openIndexTables(environment: Environment): IndexTables {
  const tables = {
    environment,
    rows: environment.table('rows'),
    ids: environment.table('ids'),
    postings: environment.table('postings'),
    words: environment.table('words'),
    numbers: environment.table('numbers'),
    owners: environment.table('owners'),
    blocks: environment.table('blocks'),
    blockIds: environment.table('block ids'),
    weave: environment.table('weave'),
    pending: environment.table('pending'),
    indexMeta: environment.table('index meta'),
  }
  const found = tables.indexMeta.get(versionKey)
  if (found === undefined) environment.write(() => tables.indexMeta.put(versionKey, Buffer.from(version)))
  else if (Buffer.from(found).toString() !== version) {
    throw new Error(`the index has records of another version: ${Buffer.from(found).toString()}`)
  }
  return tables
}

/** Bytes of the id that are the key of `ids`: enough that nobody finds two ids alike. */
export const idKeyBytes = 16

/**
 * Row key of the row with this id (32 bytes), if there is one. The caller compares the rest of the id with
 * the row.
 */
export function findRowKey(tables: IndexTables, id: Uint8Array): Buffer | undefined {
  const place = tables.ids.view(id.subarray(0, idKeyBytes))
  if (place === undefined) return undefined
  const key = Buffer.allocUnsafe(16)
  key.set(place.subarray(0, 7), 0)
  key.set(id.subarray(0, 9), 7)
  return key
}

/** Key of `weave`: an offset in the weave as 8 bytes, big-endian. */
export function weaveKey(offset: number): Buffer {
  const key = Buffer.allocUnsafe(8)
  key.writeBigUInt64BE(BigInt(offset))
  return key
}
