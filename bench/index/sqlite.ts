import { createHash } from 'node:crypto'
import { rmSync, statSync } from 'node:fs'
import type { ItemInput, RowInput, TransactionInput } from '../../src/catalog/index-protocol.js'
import { idBytes } from '../../src/format/id.js'
import { Recent } from '../../src/store/recent.js'
import type { ChainBlock } from './chain.js'

/** What node:sqlite and better-sqlite3 have in common. */
export interface SqliteDatabase {
  exec(sql: string): unknown
  prepare(sql: string): SqliteStatement
  close(): void
}

export interface SqliteStatement {
  run(...values: unknown[]): unknown
  all(...values: unknown[]): unknown[]
}

/**
 * Opens a database: with the module at `modulePath` (better-sqlite3), or the one that newer releases of Node
 * bring; undefined where none was given and Node has none.
 */
export async function openSqlite(
  file: string,
  modulePath: string | undefined,
): Promise<SqliteDatabase | undefined> {
  type Constructor = new (file: string) => SqliteDatabase
  type Module = { default?: Constructor; DatabaseSync?: Constructor }
  let module: Module
  try {
    module = (await import(modulePath ?? 'node:sqlite')) as Module
  } catch (error) {
    if (modulePath !== undefined) throw error
    return undefined
  }
  const Opened = module.DatabaseSync ?? module.default
  return Opened === undefined ? undefined : new Opened(file)
}

const sha1 = (bytes: Uint8Array | string): Buffer => createHash('sha1').update(bytes).digest()

/** Keys by which tags are clustered: SHA-1 of names and values, with a cache of the last ones. */
export class Hashes {
  readonly #known = new Recent<string, Buffer>(50_000)

  of(text: string): Buffer {
    const known = this.#known.get(text)
    if (known !== undefined) return known
    const hash = sha1(text)
    this.#known.set(text, hash)
    return hash
  }
}

/**
 * The schema that SQLite-based gateways use: rows with indexes in height order, tags clustered by the hashes
 * of name and value.
 */
const tables: Record<string, string> = {
  wallets: 'address BLOB PRIMARY KEY, public_modulus BLOB) WITHOUT ROWID',
  tag_names: 'hash BLOB PRIMARY KEY, name BLOB NOT NULL) WITHOUT ROWID',
  tag_values: 'hash BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID',
  stable_blocks: 'height INTEGER PRIMARY KEY, indep_hash BLOB, previous_block BLOB, block_timestamp INTEGER)',
  stable_transactions: `
    id BLOB NOT NULL, height INTEGER NOT NULL, block_transaction_index INTEGER NOT NULL, format INTEGER, last_tx BLOB,
    owner_address BLOB NOT NULL, target BLOB, quantity TEXT, reward TEXT, data_size INTEGER, data_root BLOB, indexed_at INTEGER)`,
  stable_transaction_tags: `
    tag_name_hash BLOB, tag_value_hash BLOB, height INTEGER, block_transaction_index INTEGER, transaction_tag_index INTEGER,
    transaction_id BLOB,
    PRIMARY KEY (tag_name_hash, tag_value_hash, height, block_transaction_index, transaction_tag_index)) WITHOUT ROWID`,
  stable_data_items: `
    id BLOB NOT NULL, parent_id BLOB NOT NULL, root_transaction_id BLOB, height INTEGER NOT NULL,
    block_transaction_index INTEGER NOT NULL, anchor BLOB, owner_address BLOB NOT NULL, target BLOB, data_offset INTEGER,
    data_size INTEGER, offset INTEGER, size INTEGER, signature_type INTEGER, indexed_at INTEGER)`,
  stable_data_item_tags: `
    tag_name_hash BLOB, tag_value_hash BLOB, height INTEGER, block_transaction_index INTEGER, data_item_id BLOB,
    data_item_tag_index INTEGER,
    PRIMARY KEY (tag_name_hash, tag_value_hash, height, block_transaction_index, data_item_id, data_item_tag_index)
    ) WITHOUT ROWID`,
}

/** Tables that are collected first and put into their order at the end, and what is unique in them. */
const sorted: Record<string, string> = {
  tag_values: 'hash',
  stable_transaction_tags:
    'tag_name_hash, tag_value_hash, height, block_transaction_index, transaction_tag_index',
  stable_data_item_tags:
    'tag_name_hash, tag_value_hash, height, block_transaction_index, data_item_id, data_item_tag_index',
}

const indexes = [
  'UNIQUE INDEX stable_transactions_id ON stable_transactions (id)',
  'UNIQUE INDEX stable_transactions_height ON stable_transactions (height, block_transaction_index)',
  'INDEX stable_transactions_owner ON stable_transactions (owner_address, height, block_transaction_index)',
  'INDEX stable_transactions_target ON stable_transactions (target, height, block_transaction_index)',
  'INDEX stable_transaction_tags_id ON stable_transaction_tags (transaction_id)',
  'UNIQUE INDEX stable_data_items_id ON stable_data_items (id)',
  'INDEX stable_data_items_height ON stable_data_items (height, block_transaction_index, id)',
  'INDEX stable_data_items_owner ON stable_data_items (owner_address, height, block_transaction_index, id)',
  'INDEX stable_data_items_target ON stable_data_items (target, height, block_transaction_index, id)',
  'INDEX stable_data_items_parent ON stable_data_items (parent_id, height, block_transaction_index, id)',
  'INDEX stable_data_item_tags_id ON stable_data_item_tags (data_item_id)',
]

/** How often each condition holds, so that a reader can begin with the rarest one; values of a name in their order. */
const counts = [
  `CREATE TABLE tag_counts (name_hash BLOB, value_hash BLOB, value TEXT, count INTEGER,
    PRIMARY KEY (name_hash, value_hash)) WITHOUT ROWID`,
  `INSERT INTO tag_counts SELECT c.n, c.v, CAST(t.value AS TEXT), sum(c.k) FROM (
    SELECT tag_name_hash n, tag_value_hash v, count(*) k FROM stable_data_item_tags GROUP BY 1, 2
    UNION ALL SELECT tag_name_hash, tag_value_hash, count(*) FROM stable_transaction_tags GROUP BY 1, 2
    ) c JOIN tag_values t ON t.hash = c.v GROUP BY 1, 2`,
  'CREATE INDEX tag_counts_value ON tag_counts (name_hash, value)',
  'CREATE TABLE key_counts (kind TEXT, key BLOB, count INTEGER, PRIMARY KEY (kind, key)) WITHOUT ROWID',
  ...(['owner_address', 'target'] as const).map(
    (column) => `INSERT INTO key_counts SELECT '${column}', ${column}, count(*) FROM (
      SELECT ${column} FROM stable_data_items UNION ALL SELECT ${column} FROM stable_transactions) GROUP BY 2`,
  ),
  "INSERT INTO key_counts SELECT 'parent_id', parent_id, count(*) FROM stable_data_items GROUP BY 2",
]

/** Rows that go to SQLite in one statement. */
const rowsAtOnce = 50

/** Fills a new database: everything without indexes first, in one transaction, with no journal on disk. */
export class SqliteBuilder {
  readonly #statements = new Map<string, SqliteStatement>()
  readonly #waiting = new Map<string, unknown[]>()
  readonly #hashes = new Hashes()
  /** Names and owners that are in: few. */
  readonly #known = new Set<string>()
  /** Recent values: a few of them are in most rows. */
  readonly #values = new Recent<string, true>(50_000)
  readonly #staging: string

  constructor(
    private readonly database: SqliteDatabase,
    private readonly file: string,
  ) {
    this.#staging = `${file}.staging`
    database.exec(`
      PRAGMA page_size = 4096; PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;
      PRAGMA cache_size = -1000000; PRAGMA temp_store = FILE; PRAGMA threads = 1;
      ATTACH '${this.#staging}' AS staging; PRAGMA staging.journal_mode = MEMORY; PRAGMA staging.synchronous = OFF;`)
    for (const [table, columns] of Object.entries(tables)) {
      database.exec(`CREATE TABLE ${table} (${columns}`)
      if (table in sorted) database.exec(`CREATE TABLE staging.${table} AS SELECT * FROM main.${table}`)
    }
    database.exec('BEGIN')
  }

  add(blocks: readonly ChainBlock[], seenSeconds: number): void {
    for (const { block, transactions, bundles } of blocks) {
      const { height } = block
      this.#put('stable_blocks', [height, block.id, block.previous, block.timestamp])
      for (const transaction of transactions) this.#transaction(transaction, height, seenSeconds)
      for (const [index, { rootId, items }] of bundles.entries()) {
        const root = idBytes(rootId)
        for (const item of items) this.#item(item, root, height, index, seenSeconds)
      }
    }
  }

  /** Puts what was collected into its order, and makes the indexes. Reports each step to `say`. */
  finish(say: (what: string) => void): void {
    for (const [table, values] of this.#waiting) this.#flush(table, values)
    this.database.exec('COMMIT')
    for (const [table, order] of Object.entries(sorted)) {
      say(`SQLite: ${table} in order`)
      this.database.exec(
        `INSERT OR IGNORE INTO main.${table} SELECT * FROM staging.${table} ORDER BY ${order}`,
      )
    }
    this.database.exec('DETACH staging')
    rmSync(this.#staging, { force: true })
    for (const index of indexes) {
      say(`SQLite: ${index.split(' ON ')[0]}`)
      this.database.exec(`CREATE ${index}`)
    }
    say('SQLite: statistics')
    for (const sql of counts) this.database.exec(sql)
    this.database.exec('PRAGMA analysis_limit = 1000; ANALYZE')
  }

  get bytes(): number {
    return statSync(this.file).size
  }

  #put(table: string, values: readonly unknown[]): void {
    const waiting = this.#waiting.get(table)
    if (waiting === undefined) this.#waiting.set(table, [...values])
    else {
      waiting.push(...values)
      if (waiting.length === values.length * rowsAtOnce) this.#flush(table, waiting)
    }
  }

  #flush(table: string, values: unknown[]): void {
    const columns = this.#columns(table)
    const rows = values.length / columns
    if (rows === 0) return
    const row = `(${Array(columns).fill('?').join(', ')})`
    const into = table in sorted ? `staging.${table}` : table
    this.#prepared(`INSERT INTO ${into} VALUES ${Array(rows).fill(row).join(', ')}`).run(...values)
    values.length = 0
  }

  #columns(table: string): number {
    const definition = (tables[table] ?? '').split('PRIMARY KEY (')[0] ?? ''
    return definition.split(',').filter((column) => column.trim() !== '').length
  }

  #prepared(sql: string): SqliteStatement {
    const statement = this.#statements.get(sql) ?? this.database.prepare(sql)
    this.#statements.set(sql, statement)
    return statement
  }

  #transaction(row: TransactionInput, height: number, seenSeconds: number): void {
    const id = idBytes(row.id)
    this.#put('stable_transactions', [
      id,
      height,
      row.index,
      row.format,
      row.anchor,
      row.ownerAddress,
      row.target,
      String(row.quantity),
      String(row.reward),
      row.size,
      row.dataRoot,
      seenSeconds,
    ])
    this.#words(row, (name, value, at) =>
      this.#put('stable_transaction_tags', [name, value, height, row.index, at, id]),
    )
  }

  #item(row: ItemInput, root: Uint8Array, height: number, index: number, seenSeconds: number): void {
    const id = idBytes(row.id)
    this.#put('stable_data_items', [
      id,
      idBytes(row.parentId),
      root,
      height,
      index,
      row.anchor,
      row.ownerAddress,
      row.target,
      row.rootItemOffset + row.headerSize,
      row.size,
      row.rootItemOffset,
      row.size + row.headerSize,
      1,
      seenSeconds,
    ])
    this.#words(row, (name, value, at) =>
      this.#put('stable_data_item_tags', [name, value, height, index, id, at]),
    )
  }

  #words(row: RowInput, add: (name: Buffer, value: Buffer, at: number) => void): void {
    const address = Buffer.from(row.ownerAddress).toString('latin1')
    if (!this.#known.has(address)) {
      this.#known.add(address)
      this.#put('wallets', [row.ownerAddress, row.owner])
    }
    for (const [at, tag] of row.tags.entries()) {
      const name = this.#hashes.of(Buffer.from(tag.name).toString('utf8'))
      const text = Buffer.from(tag.value).toString('utf8')
      const value = this.#hashes.of(text)
      const key = name.toString('latin1')
      if (!this.#known.has(key)) {
        this.#known.add(key)
        this.#put('tag_names', [name, tag.name])
      }
      if (this.#values.get(text) === undefined) {
        this.#values.set(text, true)
        this.#put('tag_values', [value, tag.value])
      }
      add(name, value, at)
    }
  }
}
