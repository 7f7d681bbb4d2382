import { sha256 } from '../proof/digest.js'

/**
 * The layout `l1-3` of a Parquet band: the base layer between two heights, as five tables and three lookups, each a file. Column
 * types are named as DuckDB describes them; every column may be null.
 */
export type ColumnType =
  | 'BLOB'
  | 'VARCHAR'
  | 'UBIGINT'
  | 'BIGINT'
  | 'INTEGER'
  | 'UINTEGER'
  | 'USMALLINT'
  | 'UTINYINT'
  | 'BOOLEAN'
  | 'DECIMAL(20,0)'

/** A value of a column: bytes of a BLOB, text of a VARCHAR, a bigint of 64 bits and more, a number of less. */
export type Value = Uint8Array | string | bigint | number | boolean | null
export type ParquetRow = readonly Value[]
export type Columns = readonly (readonly [name: string, type: ColumnType])[]

export const l1Schema = 'l1-3'

/** The five tables; each in the order of the columns named in its comment. */
export const tableColumns = {
  // height
  blocks: [
    ['indep_hash', 'BLOB'],
    ['height', 'UBIGINT'],
    ['previous_block', 'BLOB'],
    ['nonce', 'BLOB'],
    ['hash', 'BLOB'],
    ['block_timestamp', 'BIGINT'],
    ['tx_count', 'INTEGER'],
    ['block_size', 'UBIGINT'],
    ['diff', 'VARCHAR'],
    ['cumulative_diff', 'VARCHAR'],
    ['last_retarget', 'BIGINT'],
    ['reward_addr', 'BLOB'],
    ['reward_pool', 'VARCHAR'],
    ['weave_size', 'UBIGINT'],
    ['usd_to_ar_rate_dividend', 'BIGINT'],
    ['usd_to_ar_rate_divisor', 'BIGINT'],
    ['scheduled_usd_to_ar_rate_dividend', 'BIGINT'],
    ['scheduled_usd_to_ar_rate_divisor', 'BIGINT'],
    ['hash_list_merkle', 'BLOB'],
    ['wallet_list', 'BLOB'],
    ['tx_root', 'BLOB'],
  ],
  // height, block_transaction_index
  block_transactions: [
    ['height', 'UBIGINT'],
    ['block_transaction_index', 'USMALLINT'],
    ['transaction_id', 'BLOB'],
  ],
  // height, block_transaction_index
  transactions: [
    ['id', 'BLOB'],
    ['block_transaction_index', 'USMALLINT'],
    ['is_data_item', 'BOOLEAN'],
    ['target', 'BLOB'],
    ['quantity', 'DECIMAL(20,0)'],
    ['reward', 'DECIMAL(20,0)'],
    ['anchor', 'BLOB'],
    ['data_size', 'UBIGINT'],
    ['content_type', 'VARCHAR'],
    ['format', 'UTINYINT'],
    ['height', 'UBIGINT'],
    ['owner_address', 'BLOB'],
    ['data_root', 'BLOB'],
    ['offset', 'UBIGINT'],
    ['content_encoding', 'VARCHAR'],
    ['tag_count', 'INTEGER'],
    ['signature', 'BLOB'],
  ],
  // height, id, tag_index
  tags: [
    ['height', 'UBIGINT'],
    ['id', 'BLOB'],
    ['tag_index', 'USMALLINT'],
    ['tag_name', 'BLOB'],
    ['tag_value', 'BLOB'],
    ['is_data_item', 'BOOLEAN'],
  ],
  // address
  wallets: [
    ['address', 'BLOB'],
    ['public_modulus', 'BLOB'],
  ],
} as const satisfies Record<string, Columns>

/** The three lookups, each in the order of its columns. */
export const lookupColumns = {
  tx_id: [
    ['id8', 'UBIGINT'],
    ['height', 'UBIGINT'],
  ],
  // addr8, height, role, data_size
  wallet: [
    ['addr8', 'UBIGINT'],
    ['role', 'UTINYINT'],
    ['height', 'UBIGINT'],
    ['data_size', 'UBIGINT'],
  ],
  tag: [
    ['name8', 'UBIGINT'],
    ['val8', 'UBIGINT'],
    ['name', 'BLOB'],
    ['value', 'BLOB'],
    ['txs', 'UBIGINT'],
    ['first_height', 'UBIGINT'],
    ['last_height', 'UBIGINT'],
  ],
} as const satisfies Record<string, Columns>

export type TableName = keyof typeof tableColumns
export type LookupName = keyof typeof lookupColumns
export const tableNames: readonly TableName[] = [
  ...(['blocks', 'block_transactions', 'transactions', 'tags', 'wallets'] as const),
]
export const lookupNames: readonly LookupName[] = ['tx_id', 'wallet', 'tag']

/** File of a table. */
export function tableFile(name: TableName): string {
  return `${name}.parquet`
}

/** File of a lookup. */
export function lookupFile(name: LookupName): string {
  return `lookup_${name}.parquet`
}

/** `wallet` roles of the lookup: who sent a transaction, who received one. */
export const walletRole = { sent: 0, received: 1 } as const

/** Below this height no block has a `tx_root` in the layout. */
export const txRootSince = 422_250

/** The first 8 bytes as a number, big-endian; zeros where there are fewer. */
export function prefix64(bytes: Uint8Array): bigint {
  const padded = Buffer.alloc(8)
  padded.set(bytes.subarray(0, 8))
  return padded.readBigUInt64BE()
}

/** `prefix64` of the SHA-256. */
export function sha256of64(bytes: Uint8Array): bigint {
  return prefix64(sha256(bytes))
}
