import { type DocumentNode, execute, parse, validate } from 'graphql'
import { encodeBase64url } from '../../src/format/base64url.js'
import { schema } from '../../src/query/schema.js'
import type { Question } from './questions.js'
import type { SqliteDatabase, SqliteStatement } from './sqlite.js'
import { type Leg, SqlPlanner } from './sqlite-plan.js'

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

/** The answer to a question of the bench, as an object. */
interface Connection {
  readonly count?: () => number
  readonly pageInfo: { readonly hasNextPage: boolean }
  readonly edges: readonly unknown[]
}

/** Answers the bench's questions out of SQLite, with prepared statements that begin with the rarest condition. */
export class SqliteReader {
  readonly #statements = new Map<string, SqliteStatement>()
  readonly #documents = new Map<string, DocumentNode>()
  readonly #planner: SqlPlanner

  constructor(private readonly database: SqliteDatabase) {
    database.exec('PRAGMA cache_size = -1000000; PRAGMA mmap_size = 8000000000; PRAGMA query_only = ON')
    this.#planner = new SqlPlanner((sql) => this.#prepared(sql))
  }

  /** The answer as text, written straight from what SQL gives. */
  answer(question: Question): string {
    const { count, ...connection } = this.#connection(question)
    const counted = count === undefined ? {} : { count: count() }
    return JSON.stringify({ data: { transactions: { ...counted, ...connection } } })
  }

  /** The same through GraphQL; parsed queries are cached by their text. */
  answerQuery(query: string, variables: Record<string, unknown>, question: Question): string {
    let document = this.#documents.get(query)
    if (document === undefined) {
      document = parse(query)
      const [wrong] = validate(schema, document)
      if (wrong !== undefined) throw wrong
      this.#documents.set(query, document)
    }
    const rootValue = { transactions: (): Connection => this.#connection(question) }
    return JSON.stringify(execute({ schema, document, rootValue, variableValues: variables }))
  }

  #prepared(sql: string): SqliteStatement {
    const statement = this.#statements.get(sql) ?? this.database.prepare(sql)
    this.#statements.set(sql, statement)
    return statement
  }

  /** One page: legs for transactions and for items, each as long as the page, merged; then the tags of each row. */
  #connection(question: Question): Connection {
    const { first, isAscending, counts } = question
    const legs = this.#planner.plan(question)
    const rows = new Map<string, Row>()
    for (const leg of legs) {
      for (const found of this.#prepared(leg.sql).all(...leg.bound) as Found[]) {
        rows.set(found.id.toString('latin1'), { ...found, isItem: leg.isItem })
      }
    }
    const sorted = [...rows.values()].sort(newestFirst)
    if (isAscending === true) sorted.reverse()
    const hasNextPage = sorted.length > first
    const edges = sorted.slice(0, first).map((row) => this.#edge(row))
    return {
      ...(counts === true ? { count: () => this.#count(legs) } : {}),
      pageInfo: { hasNextPage },
      edges,
    }
  }

  #count(legs: readonly Leg[]): number {
    let sum = 0
    for (const { countSql, countBound } of legs) {
      const [row] = this.#prepared(countSql).all(...countBound) as { n: number }[]
      sum += row?.n ?? 0
    }
    return sum
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

  #tagsOf(row: Row): { name: string; value: string }[] {
    const [table, id, at] = row.isItem
      ? ['stable_data_item_tags', 'data_item_id', 'data_item_tag_index']
      : ['stable_transaction_tags', 'transaction_id', 'transaction_tag_index']
    const sql = `SELECT name, value FROM ${table} t JOIN tag_names n ON n.hash = t.tag_name_hash
      JOIN tag_values v ON v.hash = t.tag_value_hash WHERE t.${id} = ? ORDER BY t.${at}`
    const found = this.#prepared(sql).all(row.id) as { name: Uint8Array; value: Uint8Array }[]
    return found.map(({ name, value }) => ({ name: textOf(name), value: textOf(value) }))
  }
}

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8')

function newestFirst(a: Row, b: Row): number {
  return (
    b.height - a.height ||
    b.block_transaction_index - a.block_transaction_index ||
    Number(b.isItem) - Number(a.isItem) ||
    Buffer.compare(b.id, a.id)
  )
}
