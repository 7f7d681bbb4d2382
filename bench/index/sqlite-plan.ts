import type { Question, WantedTag } from './questions.js'
import { Hashes, type SqliteStatement } from './sqlite.js'

/** One statement of a page, and the same as a count of all pages. */
export interface Leg {
  readonly isItem: boolean
  readonly sql: string
  readonly bound: readonly unknown[]
  readonly countSql: string
  readonly countBound: readonly unknown[]
}

/** A condition that any of its keys meets, and the estimated number of rows that match. */
interface Condition {
  readonly kind: 'tag' | 'owner_address' | 'target' | 'parent_id' | 'id'
  /** Of tags. */
  readonly nameHash?: Buffer
  readonly keys: readonly Uint8Array[]
  readonly rows: number
}

/** Up to so many keys of the leading condition have a statement each, whose rows come in order and end with the page. */
const legsMax = 50
/** Values that a wildcard stands for at most. */
const valuesMax = 5000

interface Sides {
  readonly isItem: boolean
  readonly rows: string
  readonly tags: string
  readonly tagId: string
}

const sides: readonly Sides[] = [
  { isItem: false, rows: 'stable_transactions', tags: 'stable_transaction_tags', tagId: 'transaction_id' },
  { isItem: true, rows: 'stable_data_items', tags: 'stable_data_item_tags', tagId: 'data_item_id' },
]

const marks = (keys: readonly unknown[]): string => keys.map(() => '?').join(', ')

/**
 * Writes the SQL for a question: it begins with the condition that the fewest rows meet, in whatever order they were given.
 */
export class SqlPlanner {
  readonly #hashes = new Hashes()

  constructor(private readonly prepared: (sql: string) => SqliteStatement) {}

  plan(question: Question): Leg[] {
    const conditions = this.#conditions(question).toSorted((one, other) => one.rows - other.rows)
    const [lead, ...rest] = conditions
    return sides.flatMap((side) => {
      if (!side.isItem && conditions.some(({ kind }) => kind === 'parent_id')) return []
      if (lead === undefined) return [legOf(side, undefined, rest, question)]
      if (lead.keys.length > legsMax) return [legOf(side, lead, rest, question)]
      return lead.keys.map((key) => legOf(side, { ...lead, keys: [key] }, rest, question))
    })
  }

  #conditions({ tags = [], owners, recipients, bundledIn, ids }: Question): Condition[] {
    const found = tags.map((tag) => this.#tag(tag))
    if (owners !== undefined) found.push(this.#keys('owner_address', owners))
    if (recipients !== undefined) found.push(this.#keys('target', recipients))
    if (bundledIn !== undefined) found.push(this.#keys('parent_id', bundledIn))
    if (ids !== undefined) found.push({ kind: 'id', keys: ids, rows: ids.length })
    return found
  }

  #keys(kind: 'owner_address' | 'target' | 'parent_id', keys: readonly Uint8Array[]): Condition {
    const sql = `SELECT sum(count) n FROM key_counts WHERE kind = ? AND key IN (${marks(keys)})`
    return { kind, keys, rows: this.#number(sql, [kind, ...keys]) }
  }

  #tag({ name, values, isWildcard }: WantedTag): Condition {
    const nameHash = this.#hashes.of(name)
    const keys =
      isWildcard === true
        ? values.flatMap((start) => this.#valuesOf(nameHash, start))
        : [...new Set(values)].map((value) => this.#hashes.of(value))
    const sql = `SELECT sum(count) n FROM tag_counts WHERE name_hash = ? AND value_hash IN (${marks(keys)})`
    return { kind: 'tag', nameHash, keys, rows: this.#number(sql, [nameHash, ...keys]) }
  }

  /** Hashes of the values of a name that begin so. */
  #valuesOf(nameHash: Buffer, start: string): Uint8Array[] {
    const sql = `SELECT value_hash h FROM tag_counts WHERE name_hash = ? AND value >= ? AND value < ? LIMIT ${valuesMax}`
    const found = this.prepared(sql).all(nameHash, start, `${start}\u{10ffff}`) as { h: Uint8Array }[]
    return found.map(({ h }) => h)
  }

  #number(sql: string, bound: readonly unknown[]): number {
    const [row] = this.prepared(sql).all(...bound) as { n: number | null }[]
    return row?.n ?? 0
  }
}

function legOf(
  { isItem, rows, tags, tagId }: Sides,
  lead: Condition | undefined,
  rest: readonly Condition[],
  question: Question,
): Leg {
  const isTag = lead?.kind === 'tag'
  const [place, id] = isTag ? ['t', `t.${tagId}`] : ['d', 'd.id']
  const where: string[] = []
  const bound: unknown[] = []
  const add = (sql: string, ...values: unknown[]): void => {
    where.push(sql)
    bound.push(...values)
  }
  if (lead !== undefined && isTag) {
    add(`t.tag_name_hash = ? AND t.tag_value_hash IN (${marks(lead.keys)})`, lead.nameHash, ...lead.keys)
  } else if (lead !== undefined) add(`d.${lead.kind} IN (${marks(lead.keys)})`, ...lead.keys)
  for (const { kind, nameHash, keys } of rest) {
    if (kind !== 'tag') add(`d.${kind} IN (${marks(keys)})`, ...keys)
    else {
      const at = `x.height = ${place}.height AND x.block_transaction_index = ${place}.block_transaction_index`
      const values = `x.tag_name_hash = ? AND x.tag_value_hash IN (${marks(keys)})`
      add(
        `EXISTS (SELECT 1 FROM ${tags} x WHERE ${values} AND ${at} AND x.${tagId} = ${id})`,
        nameHash,
        ...keys,
      )
    }
  }
  if (question.minHeight !== undefined) add(`${place}.height >= ?`, question.minHeight)
  if (question.maxHeight !== undefined) add(`${place}.height <= ?`, question.maxHeight)
  const from = isTag ? `${tags} t CROSS JOIN ${rows} d ON d.id = t.${tagId}` : `${rows} d`
  const countSql = `SELECT count(*) n FROM ${from}${where.length === 0 ? '' : ` WHERE ${where.join(' AND ')}`}`
  const countBound = [...bound]
  const behind = cursorOf(question, isItem, place, id)
  if (behind !== undefined) add(behind.sql, ...behind.bound)
  const way = question.isAscending === true ? 'ASC' : 'DESC'
  const order = `${place}.height ${way}, ${place}.block_transaction_index ${way}, ${id} ${way}`
  const sql = `SELECT d.*, b.block_timestamp FROM ${from} CROSS JOIN stable_blocks b ON b.height = d.height
    ${where.length === 0 ? '' : `WHERE ${where.join(' AND ')}`} ORDER BY ${order} LIMIT ${question.first + 1}`
  return { isItem, sql, bound, countSql, countBound }
}

/** Rows after the cursor: at one place in a block a transaction is sorted below its items. */
function cursorOf({ after, isAscending }: Question, isItem: boolean, place: string, id: string) {
  if (after === undefined) return undefined
  const list: unknown = JSON.parse(Buffer.from(after, 'base64url').toString())
  const [height, index, wasItem, cursorId] = list as [number, number, boolean, string]
  const places = `(${place}.height, ${place}.block_transaction_index`
  const than = isAscending === true ? '>' : '<'
  if (isItem === wasItem) {
    return {
      sql: `${places}, ${id}) ${than} (?, ?, ?)`,
      bound: [height, index, Buffer.from(cursorId, 'base64url')],
    }
  }
  const isBelow = isAscending === true ? isItem : !isItem
  return { sql: `${places}) ${than}${isBelow ? '=' : ''} (?, ?)`, bound: [height, index] }
}
