import { join } from 'node:path'
import type { Environment, Table } from '../store/lmdb.js'
import type { RunLedger } from '../store/run-writer.js'
import { type RunShape, Runs } from '../store/runs.js'

/** Tables of rows that can still change, and of their words. The index has two sets of them (table-sets.ts). */
export interface RowTables {
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
  /** First seen (seconds, 4 bytes) and row key -> nothing: what is in no block yet, the oldest first. */
  readonly pending: Table
  /** Sorted files beside the environment. */
  readonly runs: { readonly ids: Runs; readonly words: Runs; readonly tags: Runs }
  /** Name -> value: the last number that was given to a word, the lists of runs. Of both sets, and of the index. */
  readonly indexMeta: Table
  /** What the names of this set's records in `indexMeta` end in. */
  readonly suffix: string
  /** Key of the hash by which words are found: 8 bytes. */
  readonly wordKey: Uint8Array
}

/** A record: the first 8 bytes of an id, height, and place in the block (the 7 bytes in front of a row key). */
export const idRuns: RunShape = { name: 'ids', width: 4, isHashed: true }
/** A record: hash of a word (its kind and its bytes), and its number (the high 8 bits, the low 32). */
export const wordRuns: RunShape = { name: 'words', width: 4, isHashed: true }
/** A record: number of a tag's name (its low 32 bits), the first 20 bytes of its value, and its own number. */
export const tagRuns: RunShape = { name: 'tags', width: 8, isHashed: false }

/** Bytes of the id that are the key of `ids`: enough that nobody finds two ids alike. */
export const idKeyBytes = 16

/** Names of tables, folders and records of the first set have no end: they are those of indexes with one set. */
const suffixes = ['', ' 2'] as const

/** Both sets in this environment. */
export function openRowTables(
  environment: Environment,
  indexMeta: Table,
  wordKey: Uint8Array,
): readonly [RowTables, RowTables] {
  const open = (suffix: string): RowTables => {
    const folder = join(environment.path, suffix === '' ? 'runs' : 'runs-2')
    const runsOf = (shape: RunShape): Runs =>
      new Runs(folder, shape, () => indexMeta.view(listKey(shape, suffix)))
    const runs = { ids: runsOf(idRuns), words: runsOf(wordRuns), tags: runsOf(tagRuns) }
    environment.onClose(() => {
      for (const kind of Object.values(runs)) kind.close()
    })
    return {
      rows: environment.table(`rows${suffix}`),
      ids: environment.table(`ids${suffix}`),
      postings: environment.table(`postings${suffix}`),
      words: environment.table(`words${suffix}`),
      numbers: environment.table(`numbers${suffix}`),
      owners: environment.table(`owners${suffix}`),
      pending: environment.table(`pending${suffix}`),
      runs,
      indexMeta,
      suffix,
      wordKey,
    }
  }
  const [first, second] = suffixes
  return [open(first), open(second)]
}

function listKey(shape: RunShape, suffix: string): Buffer {
  return Buffer.from(`runs ${shape.name}${suffix}`)
}

/** Where the list of runs of one kind stands. */
export function ledgerOf({ indexMeta, suffix }: RowTables, shape: RunShape): RunLedger {
  const key = listKey(shape, suffix)
  return {
    read: () => indexMeta.get(key),
    put: (list) => indexMeta.put(key, list),
  }
}

/** Bytes of the runs. */
export function bytesOfRuns({ runs }: RowTables): number {
  return runs.ids.bytes() + runs.words.bytes() + runs.tags.bytes()
}

/** Notifies the runs that there was a commit. */
export function refreshRuns({ runs }: RowTables): void {
  runs.ids.refresh()
  runs.words.refresh()
  runs.tags.refresh()
}
