import { constants, copyFileSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { type Database, open, type RootDatabase } from 'lmdb'
import { guardDatabases, refusedWrite } from '../../native/database/database.js'
import { diskError, isDiskError, lostStateCode } from './disk-error.js'
import { countDiskError } from './disk-errors.js'
import { withRoom } from './disk-full.js'
import { makeFolder } from './folder.js'
import { BrokenDatabase, databaseFault } from './lmdb-check.js'

/** One table of an environment: keys and values are bytes, keys in byte order. */
export interface Table {
  /** A copy of the value, valid for ever. */
  get(key: Uint8Array): Uint8Array | undefined
  /** A view of the value, valid until the next read of any table of this thread. */
  view(key: Uint8Array): Uint8Array | undefined
  /** Entries from `start` (inclusive) in key order, at most `limit`. */
  from(start: Uint8Array | undefined, limit: number): TableEntry[]
  /** The first entry at or behind `key`, in copies. */
  ceiling(key: Uint8Array): TableEntry | undefined
  /** The last entry at or before `key`, in copies. */
  floor(key: Uint8Array): TableEntry | undefined
  /** Entries of a span one by one, in copies. Nothing may be written to the table meanwhile. */
  span(wanted: KeyRange): Iterable<TableEntry>
  /** The keys of a span, in copies; the values are not read. */
  keys(wanted: KeyRange): Iterable<Uint8Array>
  /** Number of entries. */
  count(): number
  /** Only inside `write`. */
  put(key: Uint8Array, value: Uint8Array): void
  /** Puts an entry unless the key is there already; false where it is. Only inside `write`. */
  add(key: Uint8Array, value: Uint8Array): boolean
  /** Puts an entry behind all others; throws where one at or behind the key is there. Only inside `write`. */
  append(key: Uint8Array, value: Uint8Array): void
  /** Only inside `write`. */
  remove(key: Uint8Array): void
  /** Removes all entries. Only inside `write`. */
  clear(): void
}

export interface TableEntry {
  readonly key: Uint8Array
  readonly value: Uint8Array
}

/** A stretch of a table. Backwards, it begins at the entry at or before `start`. */
export interface KeyRange {
  /** Inclusive; the first key (backwards: the last) where it is absent. */
  readonly start?: Uint8Array
  /** Exclusive. */
  readonly end?: Uint8Array
  readonly backwards?: boolean
  readonly limit?: number
}

/** What an environment takes on disk. */
export interface Usage {
  readonly name: string
  readonly entries: number
  readonly bytes: number
}

/** One LMDB environment. Any number of threads open the same folder; only one of them may write. */
export interface Environment {
  /** Its folder. */
  readonly path: string
  table(name: string): Table
  /**
   * Runs `act` inside one transaction and returns after the commit. All or nothing: an exception undoes everything and is
   * thrown on. A killed process leaves the state before or after, never between.
   */
  write<T>(act: () => T): T
  /** Resolves when what was committed so far would survive a power cut too. */
  flushed(): Promise<void>
  /** Lets the next read see the latest commit. Without it a thread may see one state for the length of its turn. */
  refresh(): void
  /** Entries and bytes in use of each table that is open. */
  usage(): Usage[]
  /** Writes a copy without free pages into the new folder `path`, and of the files in folders beside it. Nobody may write. */
  copyTo(path: string): Promise<void>
  /** Calls `act` when the environment is closed. */
  onClose(act: () => void): void
  close(): Promise<void>
}

/** What LMDB says of a table (mdb_stat). */
interface Statistics {
  readonly pageSize: number
  readonly treeBranchPageCount: number
  readonly treeLeafPageCount: number
  readonly overflowPages: number
  readonly entryCount: number
}

const noBytes = new Uint8Array(0)

/** The longest key of the library (lmdb-js), with pages of 8 KiB or less. */
const keyMaxBytes = 1978

/** Most keys are ids and digests. The library copies the key of a read at once, so one buffer does for all of them. */
const readKey = Buffer.allocUnsafeSlow(32)

/** The key of a read: without the memory that V8 would have to make for a small array (`latin1Text`). */
function keyOfRead(bytes: Uint8Array): Buffer {
  if (bytes.length !== readKey.length)
    return bytes instanceof Buffer ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  readKey.set(bytes)
  return readKey
}

function tableOf(database: Database<Buffer, Buffer>): Table {
  const key = (bytes: Uint8Array): Buffer =>
    bytes instanceof Buffer ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  // No entry has such a key: a stranger may ask for one, of whom this is no fault of the program.
  const isKey = ({ length }: Uint8Array): boolean => length > 0 && length <= keyMaxBytes
  const bound = (bytes: Uint8Array): Buffer => key(bytes).subarray(0, keyMaxBytes)
  const rangeOf = ({ start, end, backwards = false, limit }: KeyRange) => ({
    ...(start === undefined ? {} : { start: bound(start) }),
    ...(end === undefined ? {} : { end: bound(end) }),
    ...(limit === undefined ? {} : { limit }),
    reverse: backwards,
  })
  // Each new range costs more than the search itself, so there is one for each direction, which begins anew.
  const nearest = (reverse: boolean): ((wanted: Uint8Array) => TableEntry | undefined) => {
    const options: { start: Buffer; limit: number; reverse: boolean } = {
      start: Buffer.alloc(0),
      limit: 1,
      reverse,
    }
    const range = database.getRange(options)
    return (wanted) => {
      options.start = bound(wanted)
      const steps = range[Symbol.iterator]()
      const step = steps.next()
      steps.return?.()
      return step.done === true ? undefined : step.value
    }
  }
  return {
    get: (wanted) => (isKey(wanted) ? database.getBinary(keyOfRead(wanted)) : undefined),
    view: (wanted) => {
      const found = isKey(wanted) ? database.getBinaryFast(keyOfRead(wanted)) : undefined
      // One buffer serves all reads; only its `length` says how much of it is the value.
      return found === undefined ? undefined : Buffer.from(found.buffer, found.byteOffset, found.length)
    },
    from(start, limit) {
      const range = start === undefined ? { limit } : { start: bound(start), limit }
      const found: TableEntry[] = []
      for (const entry of database.getRange(range)) {
        found.push({ key: Buffer.from(entry.key), value: Buffer.from(entry.value) })
      }
      return found
    },
    ceiling: nearest(false),
    floor: nearest(true),
    span: (wanted) => database.getRange(rangeOf(wanted)),
    keys: (wanted) => database.getKeys(rangeOf(wanted)),
    count: () => (database.getStats() as Statistics).entryCount,
    add: (wanted, value) =>
      database.putSync(key(wanted), key(value), { noOverwrite: true }) as unknown as boolean,
    put: (wanted, value) => database.putSync(key(wanted), key(value)),
    append: (wanted, value) => {
      const isLast = database.putSync(key(wanted), key(value), { append: true }) as unknown as boolean
      if (!isLast) throw new Error('LMDB: an entry was to be appended that is not the last one')
    },
    remove: (wanted) => void database.removeSync(key(wanted)),
    clear: () => database.clearSync(),
  }
}

/**
 * Does `act` in one transaction. Where the disk refuses a write LMDB gives EIO, whatever was the reason: what is thrown has the
 * real one.
 */
function committed<T>(root: RootDatabase<Buffer, Buffer>, path: string, act: () => T): T {
  refusedWrite()
  try {
    return withRoom(path, () => root.transactionSync(act))
  } catch (error) {
    const code = refusedWrite() ?? systemCode(error)
    const failure =
      code === undefined ? error : diskError(code, `a change of a database was undone: ${path}`, error)
    if (isDiskError(failure)) countDiskError(failure)
    throw failure
  }
}

/** The system's number of an error of the disk, where LMDB gives it: a flush failed. */
function systemCode(error: unknown): number | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'number' && code > 0 && isDiskError(error) ? code : undefined
}

/** Copies an environment without its free pages, and the files in folders beside it. */
async function copied(root: RootDatabase<Buffer, Buffer>, path: string, target: string): Promise<void> {
  await root.backup(target, true)
  for (const folder of readdirSync(path, { withFileTypes: true })) {
    if (!folder.isDirectory()) continue
    mkdirSync(join(target, folder.name), { mode: 0o700 })
    for (const name of readdirSync(join(path, folder.name))) {
      const [from, to] = [path, target].map((one) => join(one, folder.name, name)) as [string, string]
      copyFileSync(from, to, constants.COPYFILE_FICLONE)
    }
  }
}

/**
 * Opens the environment in folder `path`, made where it is missing. `tablesMax` bounds the named tables. `durable`: a commit is
 * on the disk when `write` returns, and outlives a power cut; without it the kernel writes it out soon after. All who open one
 * folder say the same. Throws where the folder cannot be used: the program cannot run without it.
 */
export function openEnvironment(path: string, tablesMax = 16, durable = false): Environment {
  makeFolder(path)
  guardDatabases()
  const fault = databaseFault(path, 0)
  if (fault !== undefined) throw new BrokenDatabase(path, fault)
  const root: RootDatabase<Buffer, Buffer> = open({
    path,
    // A dot in the name of a folder does not make it a file.
    noSubdir: false,
    encoding: 'binary',
    keyEncoding: 'binary',
    maxDbs: tablesMax,
    // A thread reads through one slot; other processes (tools, tests) may look in too.
    maxReaders: 256,
    ...(durable ? { overlappingSync: false } : {}),
  })
  const opened = new Map<string, Database<Buffer, Buffer>>()
  const database = (name: string): Database<Buffer, Buffer> => {
    const known = opened.get(name)
    if (known !== undefined) return known
    const table = openTable(root, path, name)
    opened.set(name, table)
    return table
  }
  const closing: (() => void)[] = []
  return {
    path,
    table: (name) => tableOf(database(name)),
    write: (act) => committed(root, path, act),
    flushed: async () => {
      await root.flushed
    },
    refresh: () => root.resetReadTxn(),
    usage: () =>
      [...opened].map(([name, table]) => {
        const stats = table.getStats() as Statistics
        const pages = stats.treeBranchPageCount + stats.treeLeafPageCount + stats.overflowPages
        return { name, entries: stats.entryCount, bytes: pages * stats.pageSize }
      }),
    copyTo: (target) => copied(root, path, target),
    onClose: (act) => void closing.push(act),
    close: () => {
      for (const act of closing.splice(0)) act()
      return root.close()
    },
  }
}

/** Throws a BrokenDatabase where the list of tables was overwritten: the check at the opening reads the header alone. */
function openTable(root: RootDatabase<Buffer, Buffer>, path: string, name: string): Database<Buffer, Buffer> {
  try {
    return root.openDB<Buffer, Buffer>(name, { encoding: 'binary', keyEncoding: 'binary' })
  } catch (error) {
    if (!isDamage(error)) throw error
    throw new BrokenDatabase(path, error instanceof Error ? error.message : String(error))
  }
}

/** Value of entries whose key says it all. LMDB holds empty values well. */
export const present: Uint8Array = noBytes

/**
 * Whether a read or a `write` threw because a page of the database was overwritten. LMDB reads nothing more in that transaction:
 * after a failed read `refresh` begins another one. A failed `write` was undone. What LMDB does not notice ends the process.
 */
export function isDamage(error: unknown): boolean {
  // Errors of LMDB itself have numbers of their own; those of the system are errors of the disk, which pass.
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'number' && code < -30_000 && code !== lostStateCode
}
