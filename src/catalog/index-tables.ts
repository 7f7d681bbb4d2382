import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { SegmentLedger } from '../index/segment-keeper.js'
import { Segments } from '../index/segment-list.js'
import type { Environment, Table } from '../store/lmdb.js'
import type { RunLedger } from '../store/run-writer.js'
import { type RunShape, Runs } from '../store/runs.js'
import { IndexSegments } from './index-segments.js'

/**
 * The tables of the index: what the chain holds and where it is said. They live beside the catalog's other
 * tables.
 */
export interface IndexTables {
  readonly environment: Environment
  /** Row key (16 bytes, chain order) -> row record. */
  readonly rows: Table
  /**
   * First 16 bytes of an id -> the first 7 bytes of its row key; the rest of that key is the id again. Of the last ids only:
   * the others are in the runs (ids.ts).
   */
  readonly ids: Table
  /**
   * Prefix (6 bytes) and first row key (16) -> the row keys that follow: who has a tag, an owner... in chain
   * order.
   */
  readonly postings: Table
  /** Kind and bytes of a word -> its number. Of the last words only: the others are in the runs (dictionary.ts). */
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
  /** Name -> value: version of the records, the last number given out, the lists of runs, how often blocks were dropped. */
  readonly indexMeta: Table
  /** Sorted files beside the environment. */
  readonly runs: { readonly ids: Runs; readonly words: Runs; readonly tags: Runs }
  /** Rows that do not change any more, out of the tables (docs/decisions/index-segments.md). */
  readonly segments: IndexSegments
  /** Number of a segment and of a page of its rows -> which of them are removed (removed-rows.ts). */
  readonly removed: Table
  /** Key of the hash by which words are found: 8 bytes. */
  readonly wordKey: Uint8Array
}

/** A record: the first 8 bytes of an id, height, and place in the block (the 7 bytes in front of a row key). */
export const idRuns: RunShape = { name: 'ids', width: 4, isHashed: true }
/** A record: hash of a word (its kind and its bytes), and its number (the high 8 bits, the low 32). */
export const wordRuns: RunShape = { name: 'words', width: 4, isHashed: true }
/** A record: number of a tag's name (its low 32 bits), the first 20 bytes of its value, and its own number. */
export const tagRuns: RunShape = { name: 'tags', width: 8, isHashed: false }

const versionKey = Buffer.from('version')
const version = 'sluice index 2'
/** It had all ids and words in tables: they move into runs with the commits to come. */
const versionBefore = 'sluice index 1'
const secretKey = Buffer.from('word key')

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
    removed: environment.table('removed rows'),
  }
  prepare(environment, tables.indexMeta)
  const folder = join(environment.path, 'runs')
  const runsOf = (shape: RunShape): Runs =>
    new Runs(folder, shape, () => tables.indexMeta.view(listKey(shape)))
  const runs = { ids: runsOf(idRuns), words: runsOf(wordRuns), tags: runsOf(tagRuns) }
  const files = openSegments(environment, tables.indexMeta)
  const segments = new IndexSegments(files, tables.removed, tables.indexMeta)
  environment.onClose(() => {
    files.close()
    for (const kind of Object.values(runs)) kind.close()
  })
  const wordKey = tables.indexMeta.get(secretKey)
  if (wordKey === undefined) throw new Error('the index has lost the key of its words')
  return { ...tables, runs, segments, wordKey }
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
  const said = found === undefined ? versionBefore : Buffer.from(found).toString()
  if (said === version) return
  if (said !== versionBefore) throw new Error(`the index has records of another version: ${said}`)
  environment.write(() => {
    // Another thread may have been faster.
    if (meta.get(secretKey) === undefined) meta.put(secretKey, randomBytes(8))
    meta.put(versionKey, Buffer.from(version))
  })
}

function listKey(shape: RunShape): Buffer {
  return Buffer.from(`runs ${shape.name}`)
}

/** Where the list of runs of one kind stands. */
export function ledgerOf(tables: IndexTables, shape: RunShape): RunLedger {
  const key = listKey(shape)
  return {
    read: () => tables.indexMeta.get(key),
    put: (list) => tables.indexMeta.put(key, list),
  }
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

/** Tells the runs that there was a commit. */
export function refreshRuns({ runs }: IndexTables): void {
  runs.ids.refresh()
  runs.words.refresh()
  runs.tags.refresh()
}

/** Bytes of all tables that are open, of the runs and of the segments. */
export function indexBytes({ environment, runs, segments }: IndexTables): number {
  const tables = environment.usage().reduce((sum, table) => sum + table.bytes, 0)
  return tables + runs.ids.bytes() + runs.words.bytes() + runs.tags.bytes() + segments.bytes()
}

/** Bytes of the id that are the key of `ids`: enough that nobody finds two ids alike. */
export const idKeyBytes = 16

/** Key of `weave`: an offset in the weave as 8 bytes, big-endian. */
export function weaveKey(offset: number): Buffer {
  const key = Buffer.allocUnsafe(8)
  key.writeBigUInt64BE(BigInt(offset))
  return key
}
