import type { Id } from '../format/id.js'
import { type BlockTransaction, blockLeaves, blockTree } from '../proof/block-tree.js'

/** Where a transaction lies in its block. */
export interface Placed {
  readonly id: Id
  /** Bytes of its data. */
  readonly size: number
  /** Offset of the first byte behind its data, from the block's first byte. */
  readonly end: number
  /** Proof from tx_root to its data root. */
  readonly txPath: Uint8Array
}

export interface Layout {
  /** Empty for a block without transactions. */
  readonly txRoot: Uint8Array
  /** Padding included. */
  readonly sizeBytes: number
  /** In the order of the weave. */
  readonly placed: readonly Placed[]
}

/** Places the data of a block's transactions in the weave, by the rules since data is padded. */
export function layOut(transactions: readonly BlockTransaction[]): Layout {
  const leaves = blockLeaves(transactions, true)
  const tree = blockTree(leaves)
  if (tree === undefined) return { txRoot: new Uint8Array(), sizeBytes: 0, placed: [] }
  const placed = leaves.flatMap(({ id, start, end }, index) =>
    id === undefined ? [] : [{ id, size: end - start, end, txPath: tree.path(index) }],
  )
  return { txRoot: tree.root, sizeBytes: leaves.at(-1)?.end ?? 0, placed }
}
