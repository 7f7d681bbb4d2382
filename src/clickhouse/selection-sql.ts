import type { Row } from '../catalog/row.js'
import { heightOf, indexOf, isItemKey, rowKeyBytes, rowKeyIdBytes } from '../catalog/row-key.js'
import type { Selection, TagSelection } from '../catalog/selection.js'
import {
  bundleWord,
  chainOrder,
  type RowTable,
  tagHash,
  tagTable,
  wholeRowTable,
} from './clickhouse-schema.js'
import type { StableHeights } from './heights.js'
import { columnList, Sql, type SqlPart, sql, sqlList } from './sql.js'

/** A part of the rows of a selection, in chain order. */
export interface Stretch {
  readonly backwards: boolean
  /** Inclusive. */
  readonly from: number
  readonly to: number
  /** Key behind which it begins. */
  readonly after: Uint8Array | undefined
}

/** What rows are found by in the table of tags: a tag with one of some values, or one of some bundles. */
export interface Word {
  readonly name: Uint8Array
  readonly values: readonly Uint8Array[]
  readonly isBundle: boolean
}

/** How many lists are read side by side, each in its order; more values are sorted. */
const branchesMax = 8
/** Each of these lists has all other conditions: where they would be longer than this together, rows are sorted, too. */
const branchesMaxChars = 65_536
const key = columnList(chainOrder)
const bundleName = Buffer.from(bundleWord)
const never = sql`0`
const always = sql`1`

/** The conditions of a selection for which the table of tags has the rows. */
export function lookUpWords({ tags = [], bundledIn }: Selection): Word[] {
  const words = tags.filter(({ match }) => match === 'is')
  const named = words.map(({ name, values }): Word => ({ name, values, isBundle: false }))
  if (bundledIn === undefined || bundledIn === null) return named
  return [...named, { name: bundleName, values: bundledIn, isBundle: true }]
}

/**
 * All conditions of a selection, apart from heights, where the table of tags alone finds its rows: one word, or two, of which the
 * first is `rare`. Undefined: the rows must be judged.
 */
export function onlyWords(wanted: Selection, rare?: Word): readonly Word[] | undefined {
  const { tags = [], bundledIn, minHeight: _, maxHeight: __, ...others } = wanted
  const count = tags.length + (bundledIn === undefined ? 0 : 1)
  const words = lookUpWords(wanted)
  if (words.length !== count || Object.keys(others).length > 0) return undefined
  if (count === 1) return words
  const common = words.filter(({ values }) => values !== rare?.values)
  return count === 2 && rare !== undefined && common.length === 1 ? [rare, ...common] : undefined
}

/** Whether all conditions of a selection are about the place of a row in the chain. */
export function isOfHeights({ bundledIn, minHeight: _, maxHeight: __, ...others }: Selection): boolean {
  return Object.keys(others).length === 0 && (bundledIn === undefined || bundledIn === null)
}

/** Whether a row is meant, and not only one whose tag has the same hash. */
export function isMeant({ tags, place }: Row, { name, values, isBundle }: Word): boolean {
  const isOne = (bytes: Uint8Array): boolean => values.some((value) => Buffer.compare(value, bytes) === 0)
  if (isBundle) return place !== undefined && isOne(place.parent)
  return tags.some((tag) => Buffer.compare(tag.name, name) === 0 && isOne(tag.value))
}

/**
 * The statement that gives rows of a selection in order: those of the stretch, at most `limit`, out of the four tables and with
 * these columns.
 */
export function rowsSql(
  columns: readonly string[],
  wanted: Selection,
  rare: Word | undefined,
  stretch: Stretch,
  limit: number,
): Sql {
  const all = columnList(columns)
  const words = onlyWords(wanted, rare)
  if (words === undefined) return drivenSql(all, wanted, rare, stretch, limit)
  return sql`SELECT ${all} FROM transactions WHERE ${withKeys(wordKeysSql(words, stretch, limit), stretch)}`
}

/**
 * The same out of the table of whole rows: each row is one value. At most `limit` rows where all conditions are of heights, else
 * at most so many keys, with all copies of their rows.
 */
export function wholeRowsSql(
  wanted: Selection,
  rare: Word | undefined,
  stretch: Stretch,
  limit: number,
): Sql {
  const from = columnList([wholeRowTable])
  if (isOfHeights(wanted)) {
    const where = sqlList(conditionsOf(wanted, undefined, stretch), 'and')
    return sql`SELECT row FROM ${from} WHERE ${where} ${orderSql(chainOrder, stretch.backwards)} LIMIT ${limit}`
  }
  const words = onlyWords(wanted, rare)
  const keys =
    words === undefined
      ? drivenSql(sql`DISTINCT ${key}`, wanted, rare, stretch, limit)
      : wordKeysSql(words, stretch, limit)
  return sql`SELECT row FROM ${from} WHERE ${withKeys(keys, stretch)}`
}

/** Rows with these keys, in order. */
function withKeys(keys: Sql, { from, to, backwards }: Stretch): Sql {
  return sql`height BETWEEN ${from} AND ${to} AND (${key}) IN (${keys}) ${orderSql(chainOrder, backwards)}`
}

/**
 * The keys of rows that have all these words. Copies of a key count once. Of two, the lines of the common one are read in order
 * until there are enough that the rare one has, too: what is read is a few bytes of each.
 */
function wordKeysSql(words: readonly Word[], stretch: Stretch, limit: number): Sql {
  const order = (lead: readonly string[]): Sql => orderSql([...lead, ...chainOrder], stretch.backwards)
  const [common, ...rare] = [...words].reverse() as [Word, ...Word[]]
  const conditions = [...stretchSql(stretch), ...rare.map((word) => hasWordSql(word, stretch))]
  const allHashes = hashesOf(common)
  // Many at once have no common order by hash and place.
  const lead = allHashes.length > branchesMax ? [] : ['tag_hash']
  const keys = branches(allHashes, (hashes) => {
    const where = sqlList([sql`tag_hash IN (${hashes})`, ...conditions], 'and')
    return sql`SELECT DISTINCT ${key} FROM ${columnList([tagTable])} WHERE ${where} ${order(lead)} LIMIT ${limit}`
  })
  return sql`SELECT DISTINCT ${key} FROM (${keys}) ${order([])} LIMIT ${limit}`
}

/** The key of a row is among those that have a word: for one that few have. */
function hasWordSql(word: Word, stretch: Stretch): Sql {
  const where = sqlList(
    [sql`tag_hash IN (${sqlList(hashesOf(word), 'list')})`, ...stretchSql(stretch)],
    'and',
  )
  return sql`(${key}) IN (SELECT ${key} FROM ${columnList([tagTable])} WHERE ${where})`
}

/** What is selected of the rows of any other selection, out of the table that is sorted by what it names. */
function drivenSql(
  all: Sql,
  wanted: Selection,
  rare: Word | undefined,
  stretch: Stretch,
  limit: number,
): Sql {
  const order = (lead: readonly string[]): Sql => orderSql([...lead, ...chainOrder], stretch.backwards)
  const where = conditionsOf(wanted, rare, stretch)
  if (wanted.ids !== undefined) {
    // Of an id that has moved, only its latest row counts.
    return sql`SELECT ${all} FROM id_transactions FINAL WHERE ${sqlList(where, 'and')} ${order([])} LIMIT ${limit}`
  }
  const { table, column, values } = drivenBy(wanted)
  const of = (own: Sql): Sql => {
    const lead = column === undefined ? [] : [column]
    const conditions = sqlList(
      column === undefined ? where : [sql`${columnList([column])} IN (${own})`, ...where],
      'and',
    )
    return sql`SELECT ${all} FROM ${columnList([table])} WHERE ${conditions} ${order(lead)} LIMIT ${limit}`
  }
  if (column === undefined || values.length === 1) return of(sqlList(values, 'list'))
  if (values.length > branchesMax || values.length * sqlList(where, 'and').text.length > branchesMaxChars) {
    return sql`SELECT ${all} FROM ${columnList([table])} WHERE ${sqlList(where, 'and')} ${order([])} LIMIT ${limit}`
  }
  return sql`SELECT ${all} FROM (${branches(values, of)}) ${order([])} LIMIT ${limit}`
}

/** The statement that counts the rows of a selection. */
export function countSql(wanted: Selection, rare: Word | undefined, stretch: Stretch): Sql {
  const words = onlyWords(wanted, rare)
  if (words !== undefined) {
    const [common, ...others] = [...words].reverse() as [Word, ...Word[]]
    const hashes = sql`tag_hash IN (${sqlList(hashesOf(common), 'list')})`
    const where = sqlList(
      [hashes, ...stretchSql(stretch), ...others.map((word) => hasWordSql(word, stretch))],
      'and',
    )
    return sql`SELECT uniqExact(${key}) FROM ${columnList([tagTable])} WHERE ${where}`
  }
  const where = conditionsOf(wanted, rare, stretch)
  return sql`SELECT uniqExact(id) FROM ${columnList([drivenBy(wanted).table])} WHERE ${sqlList(where, 'and')}`
}

/** For each of the words, how many lines the table of tags has, but not more than `max`. */
export function wordCountsSql(words: readonly Word[], { from, to }: StableHeights, max: number): Sql {
  const counts = words.map((word, at) => {
    const hashes = sqlList(hashesOf(word), 'list')
    const where = sql`tag_hash IN (${hashes}) AND height BETWEEN ${from} AND ${to}`
    const some = sql`SELECT 1 FROM ${columnList([tagTable])} WHERE ${where} LIMIT ${max}`
    return sql`SELECT toUInt32(${at}) AS at, count() AS counted FROM (${some})`
  })
  return sql`SELECT at, counted FROM (${sqlList(counts, 'union')}) ORDER BY at`
}

function branches(values: readonly SqlPart[], of: (values: Sql) => Sql): Sql {
  if (values.length > branchesMax) return of(sqlList(values, 'list'))
  return sqlList(
    values.map((value) => sql`SELECT * FROM (${of(sqlList([value], 'list'))})`),
    'union',
  )
}

function hashesOf({ name, values }: Word): Sql[] {
  return values.map((value) => new Sql(tagHash(sql`${name}`.text, sql`${value}`.text)))
}

/** The table that is sorted by what the selection names, with the column and the values that stand first in its order. */
function drivenBy({ ids, owners, recipients }: Selection): {
  readonly table: RowTable
  readonly column: string | undefined
  readonly values: readonly Uint8Array[]
} {
  if (ids !== undefined) return { table: 'id_transactions', column: undefined, values: [] }
  if (owners !== undefined && (recipients === undefined || owners.length <= recipients.length))
    return { table: 'owner_transactions', column: 'owner_address', values: owners }
  if (recipients !== undefined) return { table: 'target_transactions', column: 'target', values: recipients }
  return { table: 'transactions', column: undefined, values: [] }
}

function orderSql(columns: readonly string[], backwards: boolean): Sql {
  const words = columns.map((column) => sql`${columnList([column])}${backwards ? sql` DESC` : sql``}`)
  return sql`ORDER BY ${sqlList(words, 'list')}`
}

/** Heights, and what comes behind the key. */
function stretchSql({ from, to, after, backwards }: Stretch): Sql[] {
  const heights = sql`height BETWEEN ${from} AND ${to}`
  const height = after === undefined ? undefined : heightOf(after)
  if (after === undefined || height === undefined || height < from || height > to) return [heights]
  // A key has the beginning of the id only: a row with the same beginning is not behind it.
  const id = Buffer.alloc(32, backwards ? 0 : 0xff)
  id.set(after.subarray(rowKeyBytes - rowKeyIdBytes))
  const place = sql`(${height}, ${indexOf(after)}, ${isItemKey(after) ? 1 : 0}, ${id})`
  const near = backwards ? sql`height <= ${height}` : sql`height >= ${height}`
  return [heights, near, backwards ? sql`(${key}) < ${place}` : sql`(${key}) > ${place}`]
}

function isOneOf(column: string, values: readonly Uint8Array[]): Sql {
  return values.length === 0 ? never : sql`${columnList([column])} IN (${sqlList(values, 'list')})`
}

function conditionsOf(wanted: Selection, rare: Word | undefined, stretch: Stretch): Sql[] {
  const { ids, owners, recipients, bundledIn, tags = [], minSeen, maxSeen } = wanted
  const where = stretchSql(stretch)
  if (ids !== undefined) where.push(isOneOf('id', ids))
  if (owners !== undefined) where.push(isOneOf('owner_address', owners))
  if (recipients !== undefined) where.push(isOneOf('target', recipients))
  if (bundledIn === null) where.push(sql`is_data_item = 0`)
  else if (bundledIn !== undefined) where.push(isOneOf('parent_id', bundledIn))
  if (rare !== undefined) where.push(hasWordSql(rare, stretch))
  for (const tag of tags) where.push(tagSql(tag))
  if (minSeen !== undefined) where.push(seenSql(minSeen, sql`>=`))
  if (maxSeen !== undefined) where.push(seenSql(maxSeen, sql`<=`))
  return where
}

/** The times of a query may be below zero; those of rows are not. */
function seenSql(seconds: number, than: Sql): Sql {
  if (seconds >= 0) return sql`indexed_at ${than} ${seconds}`
  return than.text === '>=' ? always : never
}

function tagSql({ name, values, match }: TagSelection): Sql {
  if (match === 'starts') {
    const starts = values.map((value) => sql`startsWith(one.2, ${value})`)
    if (starts.length === 0) return never
    return sql`arrayExists(one -> one.1 = ${name} AND (${sqlList(starts, 'or')}), tags)`
  }
  if (values.length === 0) return match === 'is' ? never : always
  // `has` for each value, or `hasAny` of all, compares each tag with each value: that takes some hundred times as long.
  const isOne = sql`arrayExists(one -> one.1 = ${name} AND one.2 IN (${sqlList(values, 'list')}), tags)`
  return match === 'is' ? isOne : sql`NOT ${isOne}`
}
