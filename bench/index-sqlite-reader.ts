import { type DocumentNode, execute, parse, validate } from 'graphql'
import { encodeBase64url } from '../src/format/base64url.js'
import { schema } from '../src/query/schema.js'
import { Hashes, type SqliteDatabase, type SqliteStatement } from './index-sqlite.js'

export interface SqliteSelection {
  readonly tags?: readonly { readonly name: string; readonly value: string }[]
  readonly owner?: Uint8Array
  readonly id?: Uint8Array
  readonly minHeight?: number
  readonly maxHeight?: number
  readonly limit: number
  /** Rows older than this one. */
  readonly before?: { readonly id: Uint8Array; readonly height: number; readonly place: number }
}

interface Found {
  readonly id: Buffer
  readonly height: number
  readonly block_transaction_index: number
  readonly owner_address: Buffer
  readonly parent_id?: Buffer
  readonly data_size: number
  readonly indexed_at: number
  readonly block_timestamp: number
}

interface Row extends Found {
  readonly isItem: boolean
}

/** What the bench's question has for an answer, as an object. */
type Connection = { pageInfo: { hasNextPage: boolean }; edges: unknown[] }

/** Answers the bench's questions out of SQLite, with prepared statements. */
export class SqliteReader {
  readonly #statements = new Map<string, SqliteStatement>()
  readonly #documents = new Map<string, DocumentNode>()
  readonly #hashes = new Hashes()

  constructor(private readonly database: SqliteDatabase) {
    database.exec('PRAGMA cache_size = -1000000; PRAGMA mmap_size = 2000000000; PRAGMA query_only = ON')
  }

  /** The answer as text, written straight from what SQL gives. */
  answer(wanted: SqliteSelection): string {
    return JSON.stringify({ data: { transactions: this.#connection(wanted) } })
  }

  /** The same, by way of GraphQL: the query's text is read once, then known. */
  answerQuery(query: string, variables: Record<string, unknown>, wanted: SqliteSelection): string {
    let document = this.#documents.get(query)
    if (document === undefined) {
      document = parse(query)
      const [wrong] = validate(schema, document)
      if (wrong !== undefined) throw wrong
      this.#documents.set(query, document)
    }
    const rootValue = { transactions: (): Connection => this.#connection(wanted) }
    return JSON.stringify(execute({ schema, document, rootValue, variableValues: variables }))
  }

  #prepared(sql: string): SqliteStatement {
    const statement = this.#statements.get(sql) ?? this.database.prepare(sql)
    this.#statements.set(sql, statement)
    return statement
  }

  /**
   * One page, newest first: a leg for transactions and one for items, each as long as the page, merged; then
   * the tags of each row.
   */
  #connection(wanted: SqliteSelection): Connection {
    const rows = [...this.#leg(wanted, false), ...this.#leg(wanted, true)]
    rows.sort(
      (a, b) =>
        b.height - a.height ||
        b.block_transaction_index - a.block_transaction_index ||
        Number(b.isItem) - Number(a.isItem) ||
        Buffer.compare(b.id, a.id),
    )
    const hasNextPage = rows.length > wanted.limit
    return { pageInfo: { hasNextPage }, edges: rows.slice(0, wanted.limit).map((row) => this.#edge(row)) }
  }

  #edge(row: Row): unknown {
    const id = encodeBase64url(row.id)
    const tags = this.#tagsOf(row)
    const cursor = [row.height, row.block_transaction_index, row.isItem, id, row.indexed_at]
    return {
      cursor: encodeBase64url(Buffer.from(JSON.stringify(cursor))),
      node: {
        id,
        tags,
        data: {
          size: String(row.data_size),
          type: tags.find(({ name }) => name === 'Content-Type')?.value ?? null,
        },
        block: { height: row.height, timestamp: row.block_timestamp },
        owner: { address: encodeBase64url(row.owner_address) },
        bundledIn: row.parent_id === undefined ? null : { id: encodeBase64url(row.parent_id) },
      },
    }
  }

  #leg(
    { tags = [], owner, id, minHeight, maxHeight, limit, before }: SqliteSelection,
    isItem: boolean,
  ): Row[] {
    const [table, tagTable, tagId] = isItem
      ? ['stable_data_items', 'stable_data_item_tags', 'data_item_id']
      : ['stable_transactions', 'stable_transaction_tags', 'transaction_id']
    // The order is the first list's: that is what lets SQLite walk an index instead of sorting.
    const lead = tags.length > 0 ? 't0' : 'd'
    const leadId = tags.length > 0 ? `t0.${tagId}` : 'd.id'
    const conditions: string[] = []
    const bound: unknown[] = []
    const joins = tags.map((_, at) => {
      const own = `t${at}.tag_name_hash = ? AND t${at}.tag_value_hash = ?`
      if (at === 0) return `${tagTable} t0`
      const place = `t${at}.height = t0.height AND t${at}.block_transaction_index = t0.block_transaction_index`
      return `CROSS JOIN ${tagTable} t${at} ON ${own} AND ${place} AND t${at}.${tagId} = t0.${tagId}`
    })
    const [first, ...rest] = tags.map(({ name, value }) => [this.#hashes.of(name), this.#hashes.of(value)])
    bound.push(...rest.flat())
    const condition = (sql: string, ...given: unknown[]): void => {
      conditions.push(sql)
      bound.push(...given)
    }
    if (first !== undefined) condition('t0.tag_name_hash = ? AND t0.tag_value_hash = ?', ...first)
    if (id !== undefined) condition('d.id = ?', id)
    if (owner !== undefined) condition('d.owner_address = ?', owner)
    if (minHeight !== undefined) condition(`${lead}.height >= ?`, minHeight)
    if (maxHeight !== undefined) condition(`${lead}.height <= ?`, maxHeight)
    if (before !== undefined) {
      const place = `(${lead}.height, ${lead}.block_transaction_index, ${leadId}) < (?, ?, ?)`
      condition(place, before.height, before.place >> 1, before.id)
    }
    const from =
      tags.length > 0 ? `${joins.join(' ')} CROSS JOIN ${table} d ON d.id = t0.${tagId}` : `${table} d`
    const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
    const order = `${lead}.height DESC, ${lead}.block_transaction_index DESC, ${leadId} DESC`
    const sql = `SELECT d.*, b.block_timestamp FROM ${from} CROSS JOIN stable_blocks b ON b.height = d.height ${where}
      ORDER BY ${order} LIMIT ${limit + 1}`
    return (this.#prepared(sql).all(...bound) as Found[]).map((found) => ({ ...found, isItem }))
  }

  #tagsOf(row: Row): { name: string; value: string }[] {
    const [table, id, at] = row.isItem
      ? ['stable_data_item_tags', 'data_item_id', 'data_item_tag_index']
      : ['stable_transaction_tags', 'transaction_id', 'transaction_tag_index']
    const sql = `SELECT name, value FROM ${table} t JOIN tag_names n ON n.hash = t.tag_name_hash
      JOIN tag_values v ON v.hash = t.tag_value_hash WHERE t.${id} = ? ORDER BY t.${at}`
    const found = this.#prepared(sql).all(row.id) as { name: Buffer; value: Buffer }[]
    return found.map(({ name, value }) => ({ name: name.toString('utf8'), value: value.toString('utf8') }))
  }
}
