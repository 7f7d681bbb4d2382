import { sha256 } from './digest.js'
import { branchIdBy, HashTree, type Leaf, leafIdBy } from './hash-tree.js'

export { type Leaf, noteBytes } from './hash-tree.js'

/** One part at a time: a call with several makes an object. */
export const sha256OfPart = (bytes: Uint8Array): Uint8Array => sha256(bytes)

/** The id of a leaf: its hash and note, each hashed. */
export function leafId(hash: Uint8Array, note: Uint8Array): Uint8Array {
  return leafIdBy(sha256OfPart, hash, note)
}

/** The id of a branch. */
export function branchId(left: Uint8Array, right: Uint8Array, note: Uint8Array): Uint8Array {
  return branchIdBy(sha256OfPart, left, right, note)
}

/** A tree over leaves, which must have ascending ends. */
export class MerkleTree extends HashTree {
  /** Throws a RangeError for no leaves: there is no root then. */
  constructor(leaves: readonly Leaf[]) {
    super(leaves, sha256OfPart)
  }
}
