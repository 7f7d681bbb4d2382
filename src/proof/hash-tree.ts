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

const hashBytes = 32

/** Writes a number as a note at `at`, into bytes that are zero. */
function putNote(into: Uint8Array, offset: number, at: number): void {
  let rest = offset
  for (let byte = at + hashBytes - 1; rest > 0; byte -= 1) {
    into[byte] = rest % 256
    rest = Math.floor(rest / 256)
  }
}

/** A number as the 32 bytes of a note. */
export function noteBytes(offset: number): Uint8Array {
  const bytes = new Uint8Array(hashBytes)
  putNote(bytes, offset, 0)
  return bytes
}

/** SHA-256 of some bytes: 32 bytes. */
export type Sha256 = (bytes: Uint8Array) => Uint8Array

const pair = new Uint8Array(2 * hashBytes)
const triple = new Uint8Array(3 * hashBytes)

/** The id of a leaf: its hash and note, each hashed. */
export function leafIdBy(sha256: Sha256, hash: Uint8Array, note: Uint8Array): Uint8Array {
  pair.set(sha256(hash), 0)
  pair.set(sha256(note), hashBytes)
  return sha256(pair)
}

/** The id of a branch: both ids and the note, each hashed. */
export function branchIdBy(
  sha256: Sha256,
  left: Uint8Array,
  right: Uint8Array,
  note: Uint8Array,
): Uint8Array {
  triple.set(sha256(left), 0)
  triple.set(sha256(right), hashBytes)
  triple.set(sha256(note), 2 * hashBytes)
  return sha256(triple)
}

function nextLayer(sha256: Sha256, nodes: readonly Node[]): Node[] {
  const next: Node[] = []
  for (let i = 0; i < nodes.length; i += 2) {
    const left = nodes[i] as Node
    const right = nodes[i + 1]
    next.push(
      right === undefined
        ? left
        : { id: branchIdBy(sha256, left.id, right.id, noteBytes(left.end)), end: right.end },
    )
  }
  return next
}

/** A tree over leaves, which must have ascending ends, over one implementation of SHA-256. */
export class HashTree {
  readonly #leaves: readonly Leaf[]
  /** Leaves first, the root's layer last. */
  readonly #layers: Node[][]
  /** 32 bytes. */
  readonly root: Uint8Array

  /** Throws a RangeError for no leaves: there is no root then. */
  constructor(leaves: readonly Leaf[], sha256: Sha256) {
    if (leaves.length === 0) throw new RangeError('a tree has at least one leaf')
    this.#leaves = leaves
    let layer: Node[] = leaves.map(({ hash, end }) => ({ id: leafIdBy(sha256, hash, noteBytes(end)), end }))
    this.#layers = [layer]
    while (layer.length > 1) {
      layer = nextLayer(sha256, layer)
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
    const path = new Uint8Array(3 * hashBytes * this.#layers.length + hashBytes)
    let at = 0
    for (let level = this.#layers.length - 2; level >= 0; level--) {
      const pair = Math.floor(index / 2 ** (level + 1)) * 2
      const left = this.#layers[level]?.[pair]
      const right = this.#layers[level]?.[pair + 1]
      if (left === undefined || right === undefined) continue
      path.set(left.id, at)
      path.set(right.id, at + hashBytes)
      putNote(path, left.end, at + 2 * hashBytes)
      at += 3 * hashBytes
    }
    path.set(leaf.hash, at)
    at += leaf.hash.length
    putNote(path, leaf.end, at)
    return path.slice(0, at + hashBytes)
  }

  /** The paths to all leaves, in order. */
  paths(): Uint8Array[] {
    return this.#leaves.map((_, index) => this.path(index))
  }
}
