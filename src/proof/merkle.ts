import { sha256 } from './digest.js'

/**
 * The tree that data roots and the roots of blocks' transactions are made of. A leaf is a hash (or nothing) and the
 * offset where it ends; a branch's note is where its left side ends. Notes are 32-byte big-endian.
 *
 *     leaf id    H(H(hash) || H(note))
 *     branch id  H(H(left id) || H(right id) || H(note))
 *
 * Nodes are paired from the left, layer by layer; an odd one moves up unchanged. A path is, from the root down, left id,
 * right id and note of every branch, and at last the leaf's hash and note.
 */
export interface Leaf {
  /** SHA-256 of a chunk, or a data root. Padding and data-less transactions in a block's tree have no bytes here. */
  readonly hash: Uint8Array
  /** Offset of the first byte behind it. */
  readonly end: number
}

interface Node {
  readonly id: Uint8Array
  readonly end: number
}

/** A number as the 32 bytes of a note. */
export function noteBytes(offset: number): Uint8Array {
  const bytes = Buffer.alloc(32)
  bytes.writeBigUInt64BE(BigInt(offset), 24)
  return bytes
}

/** The id of a leaf: its hash and note, each hashed. */
export function leafId(hash: Uint8Array, note: Uint8Array): Uint8Array {
  return sha256(sha256(hash), sha256(note))
}

/** The id of a branch. */
export function branchId(left: Uint8Array, right: Uint8Array, note: Uint8Array): Uint8Array {
  return sha256(sha256(left), sha256(right), sha256(note))
}

function nextLayer(nodes: readonly Node[]): Node[] {
  const next: Node[] = []
  for (let i = 0; i < nodes.length; i += 2) {
    const left = nodes[i] as Node
    const right = nodes[i + 1]
    next.push(
      right === undefined ? left : { id: branchId(left.id, right.id, noteBytes(left.end)), end: right.end },
    )
  }
  return next
}

/** A tree over leaves, which must have ascending ends. */
export class MerkleTree {
  readonly #leaves: readonly Leaf[]
  /** Leaves first, the root's layer last. */
  readonly #layers: Node[][]
  /** 32 bytes. */
  readonly root: Uint8Array

  /** Throws a RangeError for no leaves: there is no root then. */
  constructor(leaves: readonly Leaf[]) {
    if (leaves.length === 0) throw new RangeError('a tree has at least one leaf')
    this.#leaves = leaves
    let layer: Node[] = leaves.map((leaf) => ({ id: leafId(leaf.hash, noteBytes(leaf.end)), end: leaf.end }))
    this.#layers = [layer]
    while (layer.length > 1) {
      layer = nextLayer(layer)
      this.#layers.push(layer)
    }
    this.root = (layer[0] as Node).id
  }

  get leaves(): readonly Leaf[] {
    return this.#leaves
  }

  /** The path to a leaf, as it stands in data_path and tx_path. Throws a RangeError where there is no such leaf. */
  path(index: number): Uint8Array {
    const leaf = this.#leaves[index]
    if (leaf === undefined) throw new RangeError(`no leaf ${index}`)
    const parts: Uint8Array[] = []
    for (let level = this.#layers.length - 2; level >= 0; level--) {
      const pair = Math.floor(index / 2 ** (level + 1)) * 2
      const left = this.#layers[level]?.[pair]
      const right = this.#layers[level]?.[pair + 1]
      if (left !== undefined && right !== undefined) parts.push(left.id, right.id, noteBytes(left.end))
    }
    return Buffer.concat([...parts, leaf.hash, noteBytes(leaf.end)])
  }

  /** The paths to all leaves, in order. */
  paths(): Uint8Array[] {
    return this.#leaves.map((_, index) => this.path(index))
  }
}
