import { mkdirSync } from 'node:fs'
import { type Database, open, type RootDatabase } from 'lmdb'

/** One table of an environment: keys and values are bytes, keys in byte order. */
export interface Table {
  /** A copy of the value, valid for ever. */
  get(key: Uint8Array): Uint8Array | undefined
  /** A view of the value, valid until the next read of any table of this thread. */
  view(key: Uint8Array): Uint8Array | undefined
  /** Entries from `start` (inclusive) in key order, at most `limit`. */
  from(start: Uint8Array | undefined, limit: number): Entry[]
  /** Only inside `write`. */
  put(key: Uint8Array, value: Uint8Array): void
  /** Only inside `write`. */
  remove(key: Uint8Array): void
}

export interface Entry {
  readonly key: Uint8Array
  readonly value: Uint8Array
}

/** One LMDB environment. Any number of threads open the same folder; only one of them may write. */
export interface Environment {
  table(name: string): Table
  /**
   * Runs `act` inside one transaction and returns after the commit. All or nothing: an exception undoes everything and is
   * thrown on. A killed process leaves the state before or after, never between.
   */
  write<T>(act: () => T): T
  /** Lets the next read see the latest commit. Without it a thread may see one state for the length of its turn. */
  refresh(): void
  close(): Promise<void>
}

const noBytes = new Uint8Array(0)

function tableOf(database: Database<Buffer, Buffer>): Table {
  const key = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return {
    get: (wanted) => database.getBinary(key(wanted)),
    view: (wanted) => {
      const found = database.getBinaryFast(key(wanted))
      // One buffer serves all reads; only its `length` says how much of it is the value.
      return found === undefined ? undefined : Buffer.from(found.buffer, found.byteOffset, found.length)
    },
    from(start, limit) {
      const range = start === undefined ? { limit } : { start: key(start), limit }
      const found: Entry[] = []
      for (const entry of database.getRange(range)) {
        found.push({ key: Buffer.from(entry.key), value: Buffer.from(entry.value) })
      }
      return found
    },
    put: (wanted, value) => database.putSync(key(wanted), key(value)),
    remove: (wanted) => {
      database.removeSync(key(wanted))
    },
  }
}

/**
 * Opens the environment in folder `path`, made where it is missing. `tablesMax` bounds the named tables. Throws where the
 * folder cannot be used: the program cannot run without it.
 */
export function openEnvironment(path: string, tablesMax = 16): Environment {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  const root: RootDatabase<Buffer, Buffer> = open({
    path,
    encoding: 'binary',
    keyEncoding: 'binary',
    maxDbs: tablesMax,
    // A thread reads through one slot; other processes (tools, tests) may look in too.
    maxReaders: 256,
  })
  return {
    table: (name) =>
      tableOf(root.openDB<Buffer, Buffer>(name, { encoding: 'binary', keyEncoding: 'binary' })),
    write: (act) => root.transactionSync(act),
    refresh: () => root.resetReadTxn(),
    close: () => root.close(),
  }
}

/** Value of entries whose key says it all. LMDB holds empty values well. */
export const present: Uint8Array = noBytes
