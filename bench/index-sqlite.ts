import { createHash } from 'node:crypto'
import { statSync } from 'node:fs'
import type { ItemInput, RowInput, TransactionInput } from '../src/catalog/index-protocol.js'
import { idBytes } from '../src/format/id.js'
import type { ChainBlock } from './index-chain.js'

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
 * bring.
 */
export async function openSqlite(
  file: string,
  modulePath: string | undefined,
): Promise<SqliteDatabase | undefined> {
  type Constructor = new (file: string) => SqliteDatabase
  try {
    const module = (await import(modulePath ?? 'node:sqlite')) as {
      default?: Constructor
      DatabaseSync?: Constructor
    }
    const Opened = module.DatabaseSync ?? module.default
    return Opened === undefined ? undefined : new Opened(file)
  } catch {
    // This release of Node has none and none was given: the bench says so.
    return undefined
  }
}

/**
 * The schema that SQLite-based gateways use: rows with indexes in height order, tags clustered by the hashes
 * of name and value.
 */
const definition = `
PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA cache_size = -400000; PRAGMA mmap_size = 4000000000;
CREATE TABLE wallets (address BLOB PRIMARY KEY, public_modulus BLOB) WITHOUT ROWID;
CREATE TABLE tag_names (hash BLOB PRIMARY KEY, name BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE tag_values (hash BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE stable_blocks (height INTEGER PRIMARY KEY, indep_hash BLOB, previous_block BLOB, block_timestamp INTEGER);
CREATE TABLE stable_transactions (
  id BLOB PRIMARY KEY, height INTEGER NOT NULL, block_transaction_index INTEGER NOT NULL, format INTEGER, last_tx BLOB,
  owner_address BLOB NOT NULL, target BLOB, quantity TEXT, reward TEXT, data_size INTEGER, data_root BLOB, indexed_at INTEGER);
CREATE UNIQUE INDEX stable_transactions_height ON stable_transactions (height, block_transaction_index);
CREATE INDEX stable_transactions_owner ON stable_transactions (owner_address, height, block_transaction_index);
CREATE INDEX stable_transactions_target ON stable_transactions (target, height, block_transaction_index);
CREATE TABLE stable_transaction_tags (
  tag_name_hash BLOB, tag_value_hash BLOB, height INTEGER, block_transaction_index INTEGER, transaction_tag_index INTEGER,
  transaction_id BLOB, PRIMARY KEY (tag_name_hash, tag_value_hash, height, block_transaction_index, transaction_tag_index)
) WITHOUT ROWID;
CREATE INDEX stable_transaction_tags_id ON stable_transaction_tags (transaction_id);
CREATE TABLE stable_data_items (
  id BLOB PRIMARY KEY, parent_id BLOB NOT NULL, root_transaction_id BLOB, height INTEGER NOT NULL,
  block_transaction_index INTEGER NOT NULL, anchor BLOB, owner_address BLOB NOT NULL, target BLOB,
  data_offset INTEGER,
  data_size INTEGER, offset INTEGER, size INTEGER, signature_type INTEGER, indexed_at INTEGER);
CREATE INDEX stable_data_items_height ON stable_data_items (height, block_transaction_index, id);
CREATE INDEX stable_data_items_owner ON stable_data_items (owner_address, height, block_transaction_index, id);
CREATE INDEX stable_data_items_target ON stable_data_items (target, height, block_transaction_index, id);
CREATE INDEX stable_data_items_parent ON stable_data_items (parent_id, height, block_transaction_index, id);
CREATE TABLE stable_data_item_tags (
  tag_name_hash BLOB, tag_value_hash BLOB, height INTEGER, block_transaction_index INTEGER, data_item_id BLOB,
  data_item_tag_index INTEGER,
  PRIMARY KEY (tag_name_hash, tag_value_hash, height, block_transaction_index, data_item_id, data_item_tag_index)
) WITHOUT ROWID;
CREATE INDEX stable_data_item_tags_id ON stable_data_item_tags (data_item_id);
`

export interface SqliteSelection {
  readonly tags?: readonly { readonly name: string; readonly value: string }[]
  readonly owner?: Uint8Array
  readonly minHeight?: number
  readonly maxHeight?: number
  readonly limit: number
  /** Rows older than this one. */
  readonly before?: SqliteRow
}

export interface SqliteRow {
  readonly id: Uint8Array
  readonly height: number
  readonly place: number
}

const sha1 = (bytes: Uint8Array | string): Buffer => createHash('sha1').update(bytes).digest()

export class SqliteIndex {
  readonly #statements = new Map<string, SqliteStatement>()

  constructor(
    readonly database: SqliteDatabase,
    private readonly file: string,
  ) {
    database.exec(definition)
  }

  get bytes(): number {
    return statSync(this.file).size
  }

  prepared(sql: string): SqliteStatement {
    const statement = this.#statements.get(sql) ?? this.database.prepare(sql)
    this.#statements.set(sql, statement)
    return statement
  }

  add(blocks: readonly ChainBlock[]): void {
    this.database.exec('BEGIN')
    for (const { block, transactions, bundles } of blocks) {
      const { height } = block
      this.#run('stable_blocks', [height, block.id, block.previous, block.timestamp])
      for (const transaction of transactions) this.#transaction(transaction, height)
      for (const [index, { rootId, items }] of bundles.entries()) {
        for (const item of items) this.#item(item, idBytes(rootId), height, index)
      }
    }
    this.database.exec('COMMIT')
  }

  #run(table: string, values: readonly unknown[]): void {
    const marks = values.map(() => '?').join(', ')
    this.prepared(`INSERT OR IGNORE INTO ${table} VALUES (${marks})`).run(...values)
  }

  #transaction(row: TransactionInput, height: number): void {
    const id = idBytes(row.id)
    this.#run('stable_transactions', [
      ...[id, height, row.index, row.format, row.anchor, row.ownerAddress, row.target],
      ...[String(row.quantity), String(row.reward), row.size, row.dataRoot, 0],
    ])
    this.#words(row, (name, value, at) =>
      this.#run('stable_transaction_tags', [name, value, height, row.index, at, id]),
    )
  }

  #item(row: ItemInput, root: Uint8Array, height: number, index: number): void {
    const id = idBytes(row.id)
    this.#run('stable_data_items', [
      ...[id, idBytes(row.parentId), root, height, index, row.anchor, row.ownerAddress, row.target],
      ...[row.rootItemOffset + row.headerSize, row.size, row.rootItemOffset, row.size + row.headerSize, 1, 0],
    ])
    this.#words(row, (name, value, at) =>
      this.#run('stable_data_item_tags', [name, value, height, index, id, at]),
    )
  }

  #words(row: RowInput, add: (name: Buffer, value: Buffer, at: number) => void): void {
    this.#run('wallets', [row.ownerAddress, row.owner])
    for (const [at, tag] of row.tags.entries()) {
      const name = sha1(tag.name)
      const value = sha1(tag.value)
      this.#run('tag_names', [name, tag.name])
      this.#run('tag_values', [value, tag.value])
      add(name, value, at)
    }
  }

  /**
   * One page, newest first: a leg for transactions and one for items, each as long as the page, merged; then
   * the tags of each row.
   */
  page(wanted: SqliteSelection): { row: SqliteRow; tags: unknown[] }[] {
    const rows = [...this.#leg(wanted, false), ...this.#leg(wanted, true)]
    rows.sort((a, b) => b.height - a.height || b.place - a.place || Buffer.compare(b.id, a.id))
    return rows.slice(0, wanted.limit).map((row) => ({ row, tags: this.#tagsOf(row) }))
  }

  #leg(
    { tags = [], owner, minHeight, maxHeight, limit, before }: SqliteSelection,
    items: boolean,
  ): SqliteRow[] {
    const [table, tagTable, tagId] = items
      ? ['stable_data_items', 'stable_data_item_tags', 'data_item_id']
      : ['stable_transactions', 'stable_transaction_tags', 'transaction_id']
    const values: unknown[] = []
    // The order is the first list's: that is what lets SQLite walk an index instead of sorting.
    const lead = tags.length > 0 ? 't0' : 'd'
    const leadId = tags.length > 0 ? `t0.${tagId}` : 'd.id'
    const conditions: string[] = []
    const joins = tags.map(({ name, value }, at) => {
      values.push(sha1(name), sha1(value))
      const own = `t${at}.tag_name_hash = ? AND t${at}.tag_value_hash = ?`
      if (at === 0) {
        conditions.push(own)
        return `${tagTable} t0`
      }
      const place = `t${at}.height = t0.height AND t${at}.block_transaction_index = t0.block_transaction_index`
      return `CROSS JOIN ${tagTable} t${at} ON ${own} AND ${place} AND t${at}.${tagId} = t0.${tagId}`
    })
    const [first, ...rest] = [values.splice(0, 2), values.splice(0)]
    const bound: unknown[] = [...rest.flat(), ...(first ?? [])]
    const condition = (sql: string, ...given: unknown[]): void => {
      conditions.push(sql)
      bound.push(...given)
    }
    if (owner !== undefined) condition('d.owner_address = ?', owner)
    if (minHeight !== undefined) condition(`${lead}.height >= ?`, minHeight)
    if (maxHeight !== undefined) condition(`${lead}.height <= ?`, maxHeight)
    if (before !== undefined) {
      const { height, place, id } = before
      condition(
        `(${lead}.height, ${lead}.block_transaction_index, ${leadId}) < (?, ?, ?)`,
        height,
        place >> 1,
        id,
      )
    }
    const from =
      tags.length > 0 ? `${joins.join(' ')} CROSS JOIN ${table} d ON d.id = t0.${tagId}` : `${table} d`
    const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
    const order = `${lead}.height DESC, ${lead}.block_transaction_index DESC, ${leadId} DESC`
    const sql = `SELECT d.* FROM ${from} ${where} ORDER BY ${order} LIMIT ${limit + 1}`
    const found = this.prepared(sql).all(...bound) as {
      id: Uint8Array
      height: number
      block_transaction_index: number
    }[]
    return found.map(({ id, height, block_transaction_index }) => ({
      ...{ id, height, place: block_transaction_index * 2 + (items ? 1 : 0) },
    }))
  }

  #tagsOf(row: SqliteRow): unknown[] {
    const [table, id, at] =
      row.place % 2 === 1
        ? ['stable_data_item_tags', 'data_item_id', 'data_item_tag_index']
        : ['stable_transaction_tags', 'transaction_id', 'transaction_tag_index']
    const sql = `SELECT name, value FROM ${table} t JOIN tag_names n ON n.hash = t.tag_name_hash
      JOIN tag_values v ON v.hash = t.tag_value_hash WHERE t.${id} = ? ORDER BY t.${at}`
    return this.prepared(sql).all(row.id)
  }
}
