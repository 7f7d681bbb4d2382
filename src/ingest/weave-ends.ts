import type { Block } from '../chain/chain.js'
import type { Id } from '../format/id.js'
import { type BlockTransaction, provenTree } from '../proof/block-tree.js'

/**
 * Where the data of each of a block's transactions ends in the weave (offset of its last byte, 1-based), proven by
 * the block's tx_root; of those with data. Empty where the tree does not have the block's root: transactions are
 * missing, or a node gave false ones.
 */
export function weaveEnds(block: Block, transactions: readonly BlockTransaction[]): ReadonlyMap<Id, number> {
  const ends = new Map<Id, number>()
  if (block.txRoot === undefined || transactions.length !== block.transactionIds.length) return ends
  const start = block.weaveSize - block.blockSize
  const proven = provenTree(transactions, { txRoot: block.txRoot, sizeBytes: block.blockSize })
  for (const leaf of proven?.leaves ?? []) {
    if (leaf.id !== undefined && leaf.end > leaf.start) ends.set(leaf.id, start + leaf.end)
  }
  return ends
}
