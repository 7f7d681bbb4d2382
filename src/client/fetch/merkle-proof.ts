import { isRefusal } from '../../format/refusal.js'
import { followPath, type PathQuestion, type ProvenLeaf } from '../../proof/path-rules.js'
import { hash256 } from '../hash.js'

const sha256 = (bytes: Uint8Array): Uint8Array => hash256(bytes)

/** Follows a data_path from a data root to the chunk that covers byte `target` of `size`; undefined where it proves nothing. */
export function chunkProven(
  root: Uint8Array,
  path: Uint8Array,
  target: number,
  size: number,
): ProvenLeaf | undefined {
  return proven({ root, path, target, size, ruleset: 'anywhere' })
}

/**
 * Follows a tx_path from a block's tx_root to the transaction that covers byte `target` of the block's `size` bytes: its data
 * root and bounds. Undefined where it proves nothing.
 */
export function transactionPlaceProven(
  root: Uint8Array,
  path: Uint8Array,
  target: number,
  size: number,
): ProvenLeaf | undefined {
  return proven({ root, path, target, size, ruleset: 'basic' })
}

function proven(question: PathQuestion): ProvenLeaf | undefined {
  const leaf = followPath(question, sha256)
  return isRefusal(leaf) ? undefined : leaf
}
