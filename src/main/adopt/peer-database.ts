import {
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import type sqlite from 'node-sqlite3-wasm'
import { encodeBase64url } from '../../format/base64url.js'
import { isRegularFile } from '../../store/regular-file.js'

/**
 * The SQLite files of the reference gateway: `moderation.db` (`block_sources`, `blocked_ids`, `blocked_hashes`, `blocked_names`)
 * and `data.db` (`contiguous_data_ids`, `contiguous_data`). They are opened for reading only, and one row at a time is in memory.
 */

/** An entry of its block list. */
export interface PeerBlocked {
  readonly kind: 'id' | 'hash' | 'name'
  /** Base64url of 32 bytes, or a name. */
  readonly key: string
  readonly source: string
  readonly notes: string
}

/** What it knows of the content of an id. */
export interface PeerContent {
  /** Base64url of 32 bytes. */
  readonly id: string
  /** SHA-256 of the payload, 32 bytes. */
  readonly digest: Uint8Array
  readonly contentType?: string
}

/** A file that cannot be read as such a database. The message says why. */
export class PeerDatabaseFault extends Error {}

type Row = Readonly<Record<string, unknown>>

/** Offset of the two numbers that say how a database is written (SQLite file format, 1.3), and that of a rollback journal. */
const versionsAt = 18
const rollbackJournal = 1

/**
 * A database of the other gateway, as a copy in `workFolder` that `close` removes. A copy is needed for two reasons. The reader
 * makes a folder beside the file as its lock, which a kill would leave there. It cannot open a file with a write-ahead log.
 */
export class PeerDatabase {
  private constructor(
    private readonly path: string,
    private readonly library: typeof sqlite,
    private readonly database: InstanceType<typeof sqlite.Database>,
    private readonly copy: string,
  ) {}

  /** Rejects with `PeerDatabaseFault` where the file is no database, or its log was not written into it. */
  static async open(path: string, workFolder: string): Promise<PeerDatabase> {
    if (!existsSync(path)) throw new PeerDatabaseFault(`there is no ${path}`)
    if (!isRegularFile(path)) throw new PeerDatabaseFault(`${path} is not a regular file`)
    if ((statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0)
      throw new PeerDatabaseFault(
        `${path}-wal is beside it: stop the other gateway, which then writes it into the file`,
      )
    // Loaded here, because no other command needs it.
    const { default: library } = await import('node-sqlite3-wasm')
    removeLeft(workFolder)
    const copy = copyOf(path, workFolder)
    try {
      const database = new library.Database(copy, { readOnly: true, fileMustExist: true })
      return new PeerDatabase(path, library, database, copy)
    } catch (error) {
      rmSync(copy, { force: true })
      throw faultOf(library, path, error)
    }
  }

  /** The rows of a query, one by one. Throws `PeerDatabaseFault` where the database has other tables, or is damaged. */
  *rows(sql: string): Generator<Row> {
    try {
      const statement = this.database.prepare(sql)
      try {
        for (const row of statement.iterate()) yield row as Row
      } finally {
        statement.finalize()
      }
    } catch (error) {
      throw faultOf(this.library, this.path, error)
    }
  }

  close(): void {
    this.database.close()
    rmSync(this.copy, { force: true })
  }
}

function faultOf(library: typeof sqlite, path: string, error: unknown): unknown {
  return error instanceof library.SQLite3Error ? new PeerDatabaseFault(`${path}: ${error.message}`) : error
}

/** Copies a database, by reference where the file system can, and has the copy say that it is written without a log. */
function copyOf(path: string, workFolder: string): string {
  const copy = join(workFolder, `adopting-${process.pid}.db`)
  copyFileSync(path, copy, constants.COPYFILE_FICLONE)
  if (statSync(copy).size < versionsAt + 2) return copy
  const file = openSync(copy, 'r+')
  try {
    writeSync(file, Buffer.of(rollbackJournal, rollbackJournal), 0, 2, versionsAt)
  } finally {
    closeSync(file)
  }
  return copy
}

const copyShape = /^adopting-(\d+)\.db/

/** Removes the copies of processes that were killed: the number of the process is in the name. */
function removeLeft(workFolder: string): void {
  for (const name of readdirSync(workFolder)) {
    const [, maker = ''] = copyShape.exec(name) ?? []
    if (maker !== '' && (Number(maker) === process.pid || !existsSync(`/proc/${maker}`)))
      rmSync(join(workFolder, name), { recursive: true, force: true })
  }
}

const blockedTables = [
  ['id', 'blocked_ids', 'id'],
  ['hash', 'blocked_hashes', 'hash'],
  ['name', 'blocked_names', 'name'],
] as const

/** Everything that `moderation.db` blocks. A key that is neither 32 bytes nor a name is left out by the reader of subjects. */
export function* blockedOf(database: PeerDatabase): Generator<PeerBlocked> {
  for (const [kind, table, column] of blockedTables) {
    const sql =
      `SELECT b.${column} AS key, s.name AS source, b.notes AS notes FROM ${table} b ` +
      'LEFT JOIN block_sources s ON s.id = b.block_source_id'
    for (const { key, source, notes } of database.rows(sql)) {
      const text = key instanceof Uint8Array ? encodeBase64url(key) : String(key)
      yield { kind, key: text, source: textOf(source) ?? 'unknown', notes: textOf(notes) ?? '' }
    }
  }
}

/** How many contents `data.db` knows. */
export function contentCount(database: PeerDatabase): number {
  const [row] = [...database.rows('SELECT COUNT(*) AS count FROM contiguous_data_ids')]
  return Number(row?.count ?? 0)
}

/** The contents that `data.db` knows; rows without an id or a digest of 32 bytes are left out. */
export function* contentsOf(database: PeerDatabase): Generator<PeerContent> {
  const sql =
    'SELECT i.id AS id, i.contiguous_data_hash AS hash, d.original_source_content_type AS type ' +
    'FROM contiguous_data_ids i LEFT JOIN contiguous_data d ON d.hash = i.contiguous_data_hash'
  for (const { id, hash, type } of database.rows(sql)) {
    if (!(id instanceof Uint8Array) || id.length !== 32) continue
    if (!(hash instanceof Uint8Array) || hash.length !== 32) continue
    const contentType = textOf(type)
    yield { id: encodeBase64url(id), digest: hash, ...(contentType === undefined ? {} : { contentType }) }
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}
