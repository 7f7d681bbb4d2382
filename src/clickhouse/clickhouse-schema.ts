/**
 * The tables in ClickHouse. Four are those of ar-io-node, column by column: the same rows in four orders. An operator keeps the
 * database that its importer has filled, and its gateway reads what is written here.
 */

/** Columns of the four tables, in order. BLOB is String: bytes themselves, '' and 0 where there is nothing. */
export const rowColumns: readonly (readonly [name: string, type: string])[] = [
  ['height', 'UInt32'],
  ['block_transaction_index', 'UInt16'],
  ['is_data_item', 'Bool'],
  ['id', 'String'],
  ['anchor', 'String'],
  ['owner_address', 'String'],
  ['target', 'String'],
  ['quantity', 'Decimal(20, 0)'],
  ['reward', 'Decimal(20, 0)'],
  ['data_size', 'UInt64'],
  ['content_type', 'String'],
  ['format', 'UInt8'],
  ['data_root', 'String'],
  ['parent_id', 'String'],
  ['block_indep_hash', 'String'],
  ['block_timestamp', 'UInt32'],
  ['block_previous_block', 'String'],
  ['indexed_at', 'UInt64'],
  ['inserted_at', 'DateTime'],
  ['offset', 'UInt64'],
  ['size', 'UInt64'],
  ['data_offset', 'UInt64'],
  ['owner_offset', 'UInt64'],
  ['owner_size', 'UInt64'],
  ['owner', 'String'],
  ['signature_offset', 'UInt64'],
  ['signature_size', 'UInt64'],
  ['signature_type', 'UInt32'],
  ['root_transaction_id', 'String'],
  ['root_parent_offset', 'UInt64'],
  ['tags', 'Array(Tuple(String, String))'],
  ['tags_count', 'UInt32'],
]

/** Place of a row in the chain, in the order of the index. */
export const chainOrder = ['height', 'block_transaction_index', 'is_data_item', 'id'] as const

/** The tables that have each row, and what they are sorted by. */
export const rowTables = {
  transactions: chainOrder,
  id_transactions: ['id'],
  owner_transactions: ['owner_address', ...chainOrder],
  target_transactions: ['target', ...chainOrder],
} as const satisfies Readonly<Record<string, readonly string[]>>

export type RowTable = keyof typeof rowTables

/**
 * Rows of which one is read are found by granules of this size. With the usual 8,192 a look for an id reads so many rows of each
 * part. The index of granules is in memory: 40 to 110 bytes for each.
 */
const granules: Readonly<Record<RowTable, number>> = {
  transactions: 8192,
  id_transactions: 512,
  owner_transactions: 1024,
  target_transactions: 1024,
}
const tagGranule = 512

/** What is written here goes into all four tables, by a view for each, and is kept nowhere else: a row is sent once. */
export const inputTable = 'sluice_rows'

/**
 * Rows by their tags and bundles, which the four tables find by reading all rows only: a line for each tag of each row, by a hash
 * of its name and value, and one for the bundle that holds it. A view fills it with each row that is written to `transactions`,
 * whoever writes.
 */
export const tagTable = 'sluice_tags'
const tagView = 'sluice_tags_view'

/** The columns that `readRow` (`stable-row.ts`) reads, in its order. */
export const readColumns: readonly string[] = [
  'height',
  'block_transaction_index',
  'is_data_item',
  'id',
  'anchor',
  'owner_address',
  'target',
  'quantity',
  'reward',
  'data_size',
  'format',
  'data_root',
  'parent_id',
  'block_indep_hash',
  'block_timestamp',
  'block_previous_block',
  'indexed_at',
  'inserted_at',
  'offset',
  'data_offset',
  'owner',
  'signature_type',
  'root_parent_offset',
  'tags',
]

/**
 * The same rows once more, in chain order, each as one value: its `readColumns` as RowBinary. A row is read out of one column and
 * a few hundred bytes, where the four tables need 24 columns and 8,192 rows of each. A view fills it with each row that is
 * written to `transactions`, whoever writes.
 */
export const wholeRowTable = 'sluice_whole_rows'
const wholeRowView = 'sluice_whole_rows_view'
const wholeRowSettings =
  'index_granularity = 64, min_compress_block_size = 16384, max_compress_block_size = 32768'

/** Which heights are here as a whole, by whom they were written. */
export const heightsTable = 'sluice_heights'

/** What a tag is called in `sluice_tags`; both sides are computed by ClickHouse. */
export const tagHash = (name: string, value: string): string => `sipHash64(${name}, ${value})`

/** What stands for the name of a tag where a line is about the bundle of a row. */
export const bundleWord = 'bundle of the row'

const tagsOf = `SELECT ${tagHash('tag.1', 'tag.2')} AS tag_hash, ${chainOrder.join(', ')}, inserted_at`
const allTags = `if(parent_id = '', tags, arrayPushBack(tags, ('${bundleWord}', parent_id))) AS tag`

/** Fills the table of tags for rows that were there before the view. What is written twice counts once. */
export function tagLinesStatement({ from, to }: { readonly from: number; readonly to: number }): string {
  const where = `height BETWEEN ${from} AND ${to}`
  return `INSERT INTO ${tagTable} ${tagsOf} FROM transactions ARRAY JOIN ${allTags} WHERE ${where}`
}

const wholeRowOf = `SELECT ${chainOrder.join(', ')}, inserted_at, formatRow('RowBinary', ${readColumns.join(', ')}) AS row`

/** Fills the table of whole rows for rows that were there before its view. */
export function wholeRowsStatement({ from, to }: { readonly from: number; readonly to: number }): string {
  return `INSERT INTO ${wholeRowTable} ${wholeRowOf} FROM transactions WHERE height BETWEEN ${from} AND ${to}`
}

/**
 * A record of heights that all readers pass over, because it ends before it begins: with a count of 1 the table of whole rows has
 * all rows of the four tables.
 */
export const wholeRowsMark = { from: 2 ** 32 - 1, to: 0 } as const

/** What makes the tables that are missing; each may be carried out again. */
export function schemaStatements(): readonly string[] {
  const columns = rowColumns.map(([name, type]) => `${name} ${type}`).join(', ')
  const rows = Object.entries(rowTables).map(([name, key]) => {
    return (
      `CREATE TABLE IF NOT EXISTS ${name} (${columns}) ENGINE = ReplacingMergeTree(inserted_at) ` +
      `PRIMARY KEY (${key.join(', ')}) ORDER BY (${key.join(', ')}) SETTINGS index_granularity = ${granules[name as RowTable]}`
    )
  })
  return [
    ...rows,
    `CREATE TABLE IF NOT EXISTS ${tagTable} (tag_hash UInt64, height UInt32, block_transaction_index UInt16, ` +
      `is_data_item Bool, id String, inserted_at DateTime) ENGINE = ReplacingMergeTree(inserted_at) ` +
      `PRIMARY KEY (tag_hash, height) ORDER BY (tag_hash, ${chainOrder.join(', ')}) SETTINGS index_granularity = ${tagGranule}`,
    `CREATE TABLE IF NOT EXISTS ${heightsTable} (from_height UInt32, to_height UInt32, row_count UInt64, ` +
      'version UInt64, written_at DateTime DEFAULT now()) ENGINE = ReplacingMergeTree(version) ORDER BY from_height',
    `CREATE MATERIALIZED VIEW IF NOT EXISTS ${tagView} TO ${tagTable} AS ` +
      `${tagsOf} FROM transactions ARRAY JOIN ${allTags}`,
    `CREATE TABLE IF NOT EXISTS ${wholeRowTable} (height UInt32, block_transaction_index UInt16, is_data_item Bool, ` +
      `id String, inserted_at DateTime, row String) ENGINE = ReplacingMergeTree(inserted_at) ` +
      `ORDER BY (${chainOrder.join(', ')}) SETTINGS ${wholeRowSettings}`,
    `CREATE MATERIALIZED VIEW IF NOT EXISTS ${wholeRowView} TO ${wholeRowTable} AS ${wholeRowOf} FROM transactions`,
    `CREATE TABLE IF NOT EXISTS ${inputTable} (${columns}) ENGINE = Null`,
    ...Object.keys(rowTables).map(
      (name) =>
        `CREATE MATERIALIZED VIEW IF NOT EXISTS ${inputTable}_${name} TO ${name} AS SELECT * FROM ${inputTable}`,
    ),
  ]
}
