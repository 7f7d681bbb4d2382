import { chunkSizeMax } from '../format/chunk.js'
import { type Id, idBytes } from '../format/id.js'
import type { Refusal } from '../format/refusal.js'
import { inlineDataTree } from './data-root.js'
import { equalBytes } from './digest.js'
import { type Leaf, MerkleTree } from './merkle.js'
import { type ProvenLeaf, validatePath } from './path.js'

/** What a block's tree needs to know of a transaction. */
export interface BlockTransaction {
  readonly id: Id
  readonly format: 1 | 2
  /** The data root; of a format-1 transaction that of inlineDataTree. None for format 2 without data. */
  readonly dataRoot: Uint8Array
  readonly dataSize: number
}

/** The leaf of a format-1 transaction without data. */
export const emptyInlineRoot: Uint8Array = inlineDataTree(new Uint8Array(0)).root

/** Where a transaction lies in its block. Offsets count from the block's first byte. */
export interface BlockLeaf extends Leaf {
  readonly start: number
  /** Absent for padding. */
  readonly id?: Id
}

/** Bytes that data takes up in the weave: whole chunks since padding began, just its size before. */
export function weaveSpace(dataSize: number, padded: boolean): number {
  return padded ? Math.ceil(dataSize / chunkSizeMax) * chunkSizeMax : dataSize
}

/**
 * The leaves of a block's tree in the network's order: format 1 before format 2, each by the bytes of the id; behind data
 * that does not fill its last 256 KiB a leaf without hash for the padding, where `padded` (every block since the weave's
 * padding began; new chains always).
 */
export function blockLeaves(transactions: readonly BlockTransaction[], padded: boolean): BlockLeaf[] {
  const sorted = transactions
    .map((tx) => ({ tx, key: idBytes(tx.id) }))
    .sort((a, b) => a.tx.format - b.tx.format || Buffer.compare(a.key, b.key))
  const leaves: BlockLeaf[] = []
  let start = 0
  for (const { tx } of sorted) {
    const end = start + tx.dataSize
    leaves.push({ hash: tx.dataRoot, start, end, id: tx.id })
    start += weaveSpace(tx.dataSize, padded)
    if (start > end) leaves.push({ hash: new Uint8Array(0), start: end, end: start })
  }
  return leaves
}

/** The tree whose root is the block's tx_root; undefined for a block without transactions, whose tx_root is empty. */
export function blockTree(leaves: readonly BlockLeaf[]): MerkleTree | undefined {
  return leaves.length === 0 ? undefined : new MerkleTree(leaves)
}

/** Where a block lies in the weave, and the root against which its transactions' data is proven. */
export interface BlockExtent {
  readonly txRoot: Uint8Array
  /** Bytes of the block, padding included. */
  readonly sizeBytes: number
}

/**
 * The leaves of a block, all of its transactions given, with the tree over them; undefined where they do not have its
 * root. Since the weave is padded, data fills whole chunks; so both rules are tried, and the root shows which one the
 * block was made by.
 */
export function provenTree(
  transactions: readonly BlockTransaction[],
  { txRoot, sizeBytes }: BlockExtent,
): { readonly leaves: readonly BlockLeaf[]; readonly tree: MerkleTree } | undefined {
  for (const padded of [true, false]) {
    const leaves = blockLeaves(transactions, padded)
    const tree = blockTree(leaves)
    if (tree === undefined || !equalBytes(tree.root, txRoot)) continue
    if (leaves.at(-1)?.end === sizeBytes) return { leaves, tree }
  }
  return undefined
}

/**
 * Follows a tx_path to the transaction that holds a byte of a block: its data root and bounds within the block, or a
 * refusal (forged). `offset` counts from 0 at the block's first byte: for an absolute weave offset O, counted from 1, it
 * is O - (weave size of the previous block) - 1. `blockSize` is the block's own part of the weave, padding included.
 */
export function validateTxPath(question: {
  readonly txRoot: Uint8Array
  readonly offset: number
  readonly blockSize: number
  readonly path: Uint8Array
}): ProvenLeaf | Refusal {
  const { txRoot: root, offset: target, blockSize: size, path } = question
  return validatePath({ root, target, size, path, ruleset: 'basic' })
}
