import type { Attributes, ItemPlace } from '../catalog/attributes.js'
import type { BlockInput, TransactionInput } from '../catalog/index-protocol.js'
import { type RowOrder, RowPacker } from '../catalog/pack.js'
import type { Block } from '../chain/chain.js'
import type { ItemHeader } from '../format/item.js'
import type { Transaction } from '../format/transaction.js'
import { sha256 } from '../proof/digest.js'
import { ownerOf } from '../proof/transaction-proof.js'
import { learnedOfTransaction } from '../source/roots/learned.js'
import type { FilterSubject } from './filter.js'
import type { SuppliedTransaction } from './supply.js'

/**
 * Conversions from transactions and items to what the catalog stores: rows of the index, and attributes for serving
 * by id.
 */

const none = new Uint8Array(0)

/** A data item with its place. */
export interface FoundItem {
  readonly header: ItemHeader
  readonly place: ItemPlace
  /** SHA-256 of its payload, where that was requested. */
  readonly digest?: Uint8Array
}

/** A block of the chain, as the index takes it. */
export function blockInput(block: Block): BlockInput {
  const { height, hash, previous, timestamp, weaveSize, transactionIds, header } = block
  return {
    height,
    id: hash,
    previous: previous ?? '',
    timestamp,
    weaveSize: String(weaveSize),
    transactionCount: transactionIds.length,
    ...(header === undefined ? {} : { header }),
  }
}

/** The row of a transaction in its block. */
export function transactionInput({
  transaction,
  treeRoot,
  index,
  weaveEnd,
}: SuppliedTransaction): TransactionInput {
  const { id, dataSize, target, lastTx, tags, signature } = transaction
  const owner = ownerOf(transaction)
  return {
    id,
    size: dataSize,
    owner,
    target,
    anchor: lastTx,
    tags,
    signature,
    index,
    weaveEnd,
    ownerAddress: sha256(owner),
    format: transaction.format,
    quantity: transaction.quantity,
    reward: transaction.reward,
    // Without data the root of format 1 is always the same: that is not worth 32 bytes a row.
    dataRoot: dataSize === 0 && transaction.format === 1 ? none : treeRoot,
  }
}

/** The row of a transaction that waits for a block: the computed root of a format-1 transaction comes with the block. */
export function pendingInput(transaction: Transaction): TransactionInput {
  const treeRoot = transaction.format === 2 ? transaction.dataRoot : none
  return transactionInput({ transaction, treeRoot, index: 0, weaveEnd: 0 })
}

/** The attributes of a transaction from its header alone: nothing about its data is proven yet. */
export function transactionAttributes(transaction: Transaction, height: number | undefined): Attributes {
  return {
    id: transaction.id,
    size: transaction.dataSize,
    verified: false,
    trusted: false,
    ...(height === undefined ? {} : { height }),
    ...learnedOfTransaction(transaction),
  }
}

/** What filters of the operator see of a transaction. */
export function transactionSubject(transaction: Transaction): FilterSubject {
  const { id, target, lastTx, signature, tags, dataSize } = transaction
  const owner = ownerOf(transaction)
  const { format, quantity, reward, dataRoot } = transaction
  return {
    id,
    owner,
    target,
    signature,
    tags,
    anchor: lastTx,
    sizeBytes: dataSize,
    transfer: { format, quantity, reward, dataRoot },
  }
}

/** Items as they go to the keeper. */
export function packFound(items: readonly FoundItem[], order?: RowOrder): Uint8Array {
  const packer = new RowPacker()
  for (const item of items) packItem(packer, item)
  return packer.take(order)
}

/** Packs one of them. */
export function packItem(packer: RowPacker, { header, place }: FoundItem): void {
  const { id, owner, target, anchor, tags, signatureType, signature, headerSize } = header
  const { parentId, rootItemOffset, parentItemOffset, itemSize } = place
  // Without spreading, because this runs for every item, and spreading takes several times as long.
  const item = {
    id,
    size: itemSize - headerSize,
    owner,
    target,
    anchor,
    tags,
    signature,
    signatureType,
    parentId,
    rootItemOffset,
    parentItemOffset,
    headerSize,
  }
  packer.item(item, sha256)
}

/** What filters of the operator see of an item. */
export function itemSubject({ header, place }: FoundItem): FilterSubject {
  const { id, owner, target, anchor, signature, tags, signatureType } = header
  return {
    id,
    owner,
    target,
    anchor,
    signature,
    tags,
    signatureType,
    sizeBytes: place.itemSize - header.headerSize,
    parentId: place.parentId,
    rootId: place.rootId,
  }
}
