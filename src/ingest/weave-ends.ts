import type { Block } from '../chain/chain.js'
import type { Id } from '../format/id.js'
import { type BlockTransaction, blockLeaves, blockTree } from '../proof/block.js'
import { equalBytes } from '../proof/digest.js'

/**
 * Where the data of each of a block's transactions ends in the weave (offset of its last byte, 1-based), proven by the block's
 * tx_root; of those with data. Empty where the tree does not come out: transactions are missing, or a node lied.
 */
export function weaveEnds(block: Block, transactions: readonly BlockTransaction[]): ReadonlyMap<Id, number> {
  const ends = new Map<Id, number>()
  if (block.txRoot === undefined || transactions.length !== block.transactionIds.length) return ends
  const start = block.weaveSize - block.blockSize
  // Since the weave is padded, data fills whole chunks; which rule holds for a block shows by its root.
  for (const padded of [true, false]) {
    const leaves = blockLeaves(transactions, padded)
    const tree = blockTree(leaves)
    if (tree === undefined || !equalBytes(tree.root, block.txRoot)) continue
    if (leaves.at(-1)?.end !== block.blockSize) continue
    for (const leaf of leaves) {
      if (leaf.id !== undefined && leaf.end > leaf.start) ends.set(leaf.id, start + leaf.end)
    }
    return ends
  }
  return ends
}
