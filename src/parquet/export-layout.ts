import type { Columns } from './l1-layout.js'

/**
 * The tables of an export on request, as other gateways of the network write them: plain Parquet for analytic engines, apart
 * from the bands that are published. Integers are unsigned; what the index does not know is null.
 */
export const exportColumns = {
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
  ],
  // height, block_transaction_index, is_data_item, id
  transactions: [
    ['id', 'BLOB'],
    // Second in which this gateway first saw it.
    ['indexed_at', 'UBIGINT'],
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
    // The rest of an item counts from the start of its parent's payload; of a transaction it is null but `offset`, the place
    // of its last byte in the weave.
    ['parent', 'BLOB'],
    ['offset', 'UBIGINT'],
    ['size', 'UBIGINT'],
    ['data_offset', 'UBIGINT'],
    ['owner_offset', 'UBIGINT'],
    ['owner_size', 'UINTEGER'],
    // Public keys of at most 64 bytes.
    ['owner', 'BLOB'],
    ['signature_offset', 'UBIGINT'],
    ['signature_size', 'UINTEGER'],
    ['signature_type', 'UINTEGER'],
    ['root_transaction_id', 'BLOB'],
    // Where the parent's payload begins in the root transaction's data.
    ['root_parent_offset', 'UBIGINT'],
  ],
  // height, block_transaction_index, is_data_item, id, tag_index
  tags: [
    ['height', 'UBIGINT'],
    ['id', 'BLOB'],
    ['tag_index', 'USMALLINT'],
    ['indexed_at', 'UBIGINT'],
    ['tag_name', 'BLOB'],
    ['tag_value', 'BLOB'],
    ['is_data_item', 'BOOLEAN'],
  ],
} as const satisfies Record<string, Columns>

export type ExportTable = keyof typeof exportColumns
