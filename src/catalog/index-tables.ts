import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { SegmentLedger } from '../index/segment-keeper.js'
import { Segments } from '../index/segment-list.js'
import type { Environment, Table } from '../store/lmdb.js'
import { IndexSegments } from './index-segments.js'
import { bytesOfRuns, openRowTables, refreshRuns } from './row-tables.js'
import { TableSets } from './table-sets.js'

/**
 * The tables of the index: what the chain holds and where it stands. They live beside the catalog's other
 * tables.
 */
export interface IndexTables {
  readonly environment: Environment
  /** Rows that can still change, and what finds them. */
  readonly sets: TableSets
  /** Height (4 bytes) -> block record. */
  readonly blocks: Table
  /** Block id (48 bytes) -> height. */
  readonly blockIds: Table
  /** Offset of the last byte in the weave (8 bytes) -> row key of the transaction whose data ends there. */
  readonly weave: Table
  /** Name -> value: version of the records, which row tables are current, the lists of files, how often blocks were dropped. */
  readonly indexMeta: Table
  /** Rows that do not change any more, out of the tables (docs/decisions/index-segments.md). */
  readonly segments: IndexSegments
  /** Number of a segment and of a page of its rows -> which of them are removed (removed-rows.ts). */
  readonly removed: Table
}

const versionKey = Buffer.from('version')
const version = 'sluice index 2'
/** It had all ids and words in tables: they move into runs with the commits to come. */
const versionBefore = 'sluice index 1'
/** From when on rows are in both sets of tables: earlier versions of this program would miss some. */
const versionOfTwo = 'sluice index 3'
const secretKey = Buffer.from('word key')

/** The index in this environment. Throws where it was written by a version that keeps other records. */
export function openIndexTables(environment: Environment): IndexTables {
  const tables = {
    environment,
    blocks: environment.table('blocks'),
    blockIds: environment.table('block ids'),
    weave: environment.table('weave'),
    indexMeta: environment.table('index meta'),
    removed: environment.table('removed rows'),
  }
  prepare(environment, tables.indexMeta)
  const files = openSegments(environment, tables.indexMeta)
  const segments = new IndexSegments(files, tables.removed, tables.indexMeta)
  environment.onClose(() => files.close())
  const wordKey = tables.indexMeta.get(secretKey)
  if (wordKey === undefined) throw new Error('the index has lost the key of its words')
  const sets = new TableSets(openRowTables(environment, tables.indexMeta, wordKey), tables.indexMeta)
  return { ...tables, sets, segments }
}

const segmentsKey = Buffer.from('segments')

/** The segments of the index, as one more reader has them. */
export function openSegments(environment: Environment, indexMeta: Table): Segments {
  return new Segments(join(environment.path, 'segments'), () => indexMeta.view(segmentsKey))
}

/** Where the list of segments stands. */
export function segmentLedger({ environment, indexMeta }: IndexTables): SegmentLedger {
  return {
    read: () => indexMeta.get(segmentsKey),
    write: (list, also) => {
      environment.write(() => {
        indexMeta.put(segmentsKey, list)
        also?.()
      })
    },
  }
}

function prepare(environment: Environment, meta: Table): void {
  const found = meta.get(versionKey)
  const written = found === undefined ? versionBefore : Buffer.from(found).toString()
  if (written === version || written === versionOfTwo) return
  if (written !== versionBefore) throw new Error(`the index has records of another version: ${written}`)
  environment.write(() => {
    // Another thread may have been faster.
    if (meta.get(secretKey) === undefined) meta.put(secretKey, randomBytes(8))
    meta.put(versionKey, Buffer.from(version))
  })
}

/** A transaction was undone: forgets what was known of its state. */
export function forgetState({ sets, segments }: IndexTables): void {
  sets.forget()
  segments.changed()
  for (const set of sets.sets) refreshRuns(set)
}

/** From here on rows are in both sets of tables: only the keeper, inside its transaction. */
export function markTwoSets({ indexMeta }: Pick<IndexTables, 'indexMeta'>): void {
  indexMeta.put(versionKey, Buffer.from(versionOfTwo))
}

const forksKey = Buffer.from('forks')

/** How often blocks were dropped, modulo 2^32. */
export function forksIn({ indexMeta }: Pick<IndexTables, 'indexMeta'>): number {
  const count = indexMeta.get(forksKey)
  return count === undefined ? 0 : Buffer.from(count).readUInt32BE(0)
}

/** Blocks were dropped: only the keeper, inside its transaction. */
export function countFork(tables: Pick<IndexTables, 'indexMeta'>): void {
  const count = Buffer.allocUnsafe(4)
  count.writeUInt32BE((forksIn(tables) + 1) % 2 ** 32)
  tables.indexMeta.put(forksKey, count)
}

/** Bytes of all tables that are open, of the runs and of the segments. */
export function indexBytes({ environment, sets, segments }: IndexTables): number {
  const tables = environment.usage().reduce((sum, table) => sum + table.bytes, 0)
  return sets.sets.reduce((sum, set) => sum + bytesOfRuns(set), tables) + segments.bytes()
}

/** Key of `weave`: an offset in the weave as 8 bytes, big-endian. */
export function weaveKey(offset: number): Buffer {
  const key = Buffer.allocUnsafe(8)
  key.writeBigUInt64BE(BigInt(offset))
  return key
}
