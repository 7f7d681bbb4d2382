/** Rows of another gateway's export as what enters the index. */

import { packBlockHeader } from '../catalog/block-header.js'
import type { BlockInput, ItemInput, TransactionInput } from '../catalog/index-protocol.js'
import { heightMax } from '../chain/json-fields.js'
import { encodeBase64url } from '../format/base64url.js'
import { type Id, idOfBytes } from '../format/id.js'
import type { Tag } from '../format/tag.js'
import { sha256 } from '../proof/digest.js'
import type { Value } from './l1-layout.js'
import { ParquetFault } from './parquet-reader.js'
import { bytesIn, numberIn } from './table-cursor.js'

const empty = new Uint8Array(0)

const bytesOr = (value: Value | undefined): Uint8Array => (value instanceof Uint8Array ? value : empty)
const numberOr = (value: Value | undefined, none: number): number => (value === null ? none : numberIn(value))
const amountIn = (value: Value | undefined): bigint => (typeof value === 'bigint' ? value : 0n)

function idIn(value: Value | undefined): Id {
  const bytes = bytesIn(value)
  if (bytes.length !== 32) throw new ParquetFault('an id has not 32 bytes')
  return idOfBytes(bytes)
}

/** The fields of a block in the export, without its end in the weave, which no column has. */
export type PeerBlock = Omit<BlockInput, 'weaveSize'> & { readonly sizeBytes: number }

/** A block out of its row. Throws a ParquetFault where a value has another type than the column. */
export function peerBlock(row: readonly Value[]): PeerBlock {
  const [id, height, previous, nonce, hash, timestamp, count, size] = row
  const sizeBytes = numberOr(size, 0)
  const header = {
    ...(nonce instanceof Uint8Array ? { nonce } : {}),
    ...(hash instanceof Uint8Array ? { hash } : {}),
    blockSize: String(sizeBytes),
  }
  return {
    height: heightIn(height),
    id: encodeBase64url(bytesIn(id)),
    previous: encodeBase64url(bytesOr(previous)),
    timestamp: numberIn(timestamp),
    transactionCount: numberIn(count),
    header: packBlockHeader(header),
    sizeBytes,
  }
}

/** Keys of the index have four bytes for a height. */
function heightIn(value: Value | undefined): number {
  const height = numberIn(value)
  if (height > heightMax) throw new ParquetFault(`a block has the height ${height}`)
  return height
}

/** Rows of one height, with their tags. */
export interface PeerRows {
  readonly transactions: readonly TransactionInput[]
  /** Keyed by the transaction that holds them. */
  readonly items: ReadonlyMap<Id, readonly ItemInput[]>
  /** Items whose place makes no sense. */
  readonly misplaced: number
}

/** Transactions and items out of their rows. Throws a ParquetFault where a value has another type than its column. */
export function peerRowsOf(rows: readonly Value[][], tagRows: readonly Value[][]): PeerRows {
  const tags = tagsById(tagRows)
  const transactions: TransactionInput[] = []
  const items = new Map<Id, ItemInput[]>()
  let misplaced = 0
  for (const row of rows) {
    const own = tags.get(textOf(bytesIn(row[0]))) ?? []
    if (row[2] !== true) {
      transactions.push(transactionIn(row, own))
      continue
    }
    const item = itemIn(row, own)
    const root = idIn(row[17])
    if (item === undefined) misplaced += 1
    else if (!items.get(root)?.push(item)) items.set(root, [item])
  }
  return { transactions, items, misplaced }
}

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1')

/** Tags by the id of what has them, each in the order of its header; entries without a name are none. */
function tagsById(rows: readonly Value[][]): Map<string, Tag[]> {
  const found = new Map<string, { index: number; tag: Tag }[]>()
  for (const [, id, index, name, value] of rows) {
    const key = textOf(bytesIn(id))
    const one = { index: numberIn(index), tag: { name: bytesOr(name), value: bytesOr(value) } }
    if (!found.get(key)?.push(one)) found.set(key, [one])
  }
  const ordered = [...found].map(([key, list]): [string, Tag[]] => {
    return [key, list.sort((one, other) => one.index - other.index).map(({ tag }) => tag)]
  })
  return new Map(ordered)
}

/** What transactions and items have in common. */
function common(row: readonly Value[], tags: readonly Tag[]) {
  const [id, , , target, , , anchor, size] = row
  const owner = bytesOr(row[15])
  return {
    id: idIn(id),
    size: numberIn(size),
    owner,
    ownerAddress: owner.length > 0 ? sha256(owner) : bytesIn(row[10]),
    target: bytesOr(target),
    anchor: bytesOr(anchor),
    tags,
  }
}

function transactionIn(row: readonly Value[], tags: readonly Tag[]): TransactionInput {
  return {
    ...common(row, tags),
    index: numberIn(row[1]),
    format: numberOr(row[8], 2),
    quantity: amountIn(row[4]),
    reward: amountIn(row[5]),
    dataRoot: bytesOr(row[11]),
    weaveEnd: numberOr(row[13], 0),
  }
}

/** Undefined: its stated place is impossible. */
function itemIn(row: readonly Value[], tags: readonly Tag[]): ItemInput | undefined {
  const [parent, offset, dataOffset, , signatureType, , rootParentOffset] = row.slice(12)
  if (parent === null || offset === null || dataOffset === null || rootParentOffset === null) return undefined
  const parentItemOffset = numberIn(offset)
  const headerSize = numberIn(dataOffset) - parentItemOffset
  if (headerSize <= 0) return undefined
  return {
    ...common(row, tags),
    ...(signatureType === null ? {} : { signatureType: numberIn(signatureType) }),
    parentId: idIn(parent),
    parentItemOffset,
    headerSize,
    rootItemOffset: numberIn(rootParentOffset) + parentItemOffset,
  }
}
