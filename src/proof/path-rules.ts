import { copyOf, sameBytes } from '../format/bytes.js'
import { chunkSizeMax } from '../format/chunk.js'
import { type Refusal, refuse } from '../format/refusal.js'
import { branchIdBy, leafIdBy, type Sha256 } from './hash-tree.js'

/**
 * The rules by which the network checks a path. Chunks later in the weave must follow stricter ones.
 *
 * - `basic`: hashes only. The rules for tx_path.
 * - `borders`: no chunk, and no range between the notes of two branches, is larger than 256 KiB.
 * - `strict`: also, chunks start on multiples of 256 KiB; only the last two may differ.
 * - `anywhere`: as `borders`, and subtrees as in `rebase`: for who does not know the place in the weave for certain.
 * - `rebase`: similar rules inside subtrees whose offsets start again at 0 (a branch announced by 32 zero bytes).
 */
export type Ruleset = 'basic' | 'borders' | 'strict' | 'rebase' | 'anywhere'

const strictFrom = 30_607_159_107_830
const rebaseFrom = 151_066_495_197_430

/** The rules for a data_path at an absolute weave offset, counted from 1 as `/chunk/{offset}` counts. */
export function rulesetAt(weaveOffset: number): Ruleset {
  if (weaveOffset > rebaseFrom) return 'rebase'
  return weaveOffset > strictFrom ? 'strict' : 'borders'
}

export interface PathQuestion {
  readonly root: Uint8Array
  /** Offset of the byte in question, counted from 0 within what the tree covers. */
  readonly target: number
  /** Bytes that the tree covers. */
  readonly size: number
  readonly path: Uint8Array
  readonly ruleset: Ruleset
}

export interface ProvenLeaf {
  /** SHA-256 of the chunk, or the data root of a transaction. */
  readonly dataHash: Uint8Array
  /** First byte of the leaf. */
  readonly start: number
  /** First byte behind it. */
  readonly end: number
}

/**
 * A chunk's proof may not be longer than the chunk could be; at 96 bytes a level such a tree would be far deeper than
 * any data needs.
 */
const pathSizeMax = chunkSizeMax
const zeros = new Uint8Array(32)

/** State of the walk from the root. Bounds and target are relative to `shift`; left <= target < right always. */
interface Walk {
  readonly sha256: Sha256
  id: Uint8Array
  at: number
  left: number
  right: number
  target: number
  /** Absolute offset where the innermost rebased subtree starts. */
  shift: number
  /** Only right branches were taken in this subtree; unknown before the first. */
  rightmost: boolean | undefined
}

function forged(message: string): Refusal {
  return refuse('forged', 'upstream', `path: ${message}`)
}

/** Reads a note. Above 2^53 the value is inexact, but it is only compared, and larger than every valid offset. */
function readNote(path: Uint8Array, at: number): number {
  let value = 0
  for (let i = at; i < at + 32; i++) value = value * 256 + (path[i] ?? 0)
  return value
}

/** Steps through a branch at `at`; `rebased` where its right side counts from 0 again. False: the hash is wrong. */
function step(walk: Walk, path: Uint8Array, at: number, rebased: boolean): boolean {
  const left = path.subarray(at, at + 32)
  const right = path.subarray(at + 32, at + 64)
  if (!sameBytes(branchIdBy(walk.sha256, left, right, path.subarray(at + 64, at + 96)), walk.id)) return false
  const note = readNote(path, at + 64)
  walk.at = at + 96
  const goLeft = walk.target < note
  walk.id = goLeft ? left : right
  if (goLeft) {
    walk.right = Math.min(walk.right, note)
    walk.rightmost = rebased ? undefined : false
    return true
  }
  const bound = Math.max(walk.left, note)
  if (!rebased) {
    walk.left = bound
    walk.rightmost ??= true
    return true
  }
  walk.left = 0
  walk.right -= bound
  walk.target -= bound
  walk.shift += bound
  walk.rightmost = undefined
  return true
}

/** Every chunk but the last two fills a bucket of 256 KiB; the last two together fill one bucket and a part of the next. */
function isStrictlySplit(walk: Walk, end: number, size: number): boolean {
  if (end - walk.left === chunkSizeMax) return walk.left % chunkSizeMax === 0
  if (end === size) {
    const border = Math.floor(walk.right / chunkSizeMax) * chunkSizeMax
    return walk.right % chunkSizeMax > 0 && walk.left <= border
  }
  const rest = size - walk.left
  return walk.left % chunkSizeMax === 0 && rest > chunkSizeMax && rest < 2 * chunkSizeMax
}

/** Every chunk starts at a bucket; the last one of a subtree may instead reach from one bucket into the next. */
function isLooselySplit(walk: Walk, end: number): boolean {
  const start = walk.shift + walk.left
  if (start % chunkSizeMax === 0) return true
  const behind = walk.shift + end
  return (
    walk.rightmost === true &&
    Math.floor(start / chunkSizeMax) + 1 === Math.floor(behind / chunkSizeMax) &&
    behind % chunkSizeMax !== 0
  )
}

function checkLeaf(walk: Walk, question: PathQuestion): ProvenLeaf | Refusal {
  const dataHash = copyOf(question.path, walk.at, walk.at + 32)
  const note = question.path.subarray(walk.at + 32, walk.at + 64)
  if (!sameBytes(leafIdBy(walk.sha256, dataHash, note), walk.id))
    return forged('the leaf does not hash to its parent')
  const end = readNote(note, 0)
  const { ruleset } = question
  if (ruleset !== 'basic' && Math.max(end, walk.right) - walk.left > chunkSizeMax) {
    return forged('the chunk is larger than 256 KiB')
  }
  if (ruleset === 'strict' && !isStrictlySplit(walk, end, question.size)) {
    return forged('the chunk does not lie on the 256 KiB grid')
  }
  if (ruleset === 'rebase' && !isLooselySplit(walk, end)) {
    return forged('the chunk does not lie on the 256 KiB grid of its subtree')
  }
  const leaf = {
    dataHash,
    start: walk.shift + walk.left,
    end: walk.shift + Math.max(Math.min(walk.right, end), walk.left + 1),
  }
  // Branches lead to the nearest leaf. That of a root for less data than its transaction states ends before.
  const covers = leaf.start <= question.target && question.target < leaf.end
  return covers ? leaf : forged(`the leaf ends before byte ${question.target}`)
}

/**
 * Follows a path from the root to the leaf that covers `target`: what the leaf holds and which bytes it covers, or a
 * refusal (forged) where a hash, a length or a rule does not hold.
 */
export function followPath(question: PathQuestion, sha256: Sha256): ProvenLeaf | Refusal {
  const { root, target, size, path, ruleset } = question
  if (!(target >= 0 && target < size && size <= Number.MAX_SAFE_INTEGER)) {
    return forged(`offset ${target} is not inside ${size} bytes`)
  }
  if (path.length > pathSizeMax) return forged(`longer than ${pathSizeMax} bytes`)
  const start = { id: root, at: 0, left: 0, right: size, target, shift: 0 }
  const walk: Walk = { ...start, sha256, rightmost: undefined }
  const mayRebase = ruleset === 'rebase' || ruleset === 'anywhere'
  while (path.length - walk.at !== 64) {
    const rebased = mayRebase && sameBytes(path.subarray(walk.at, walk.at + 32), zeros)
    const at = rebased ? walk.at + 32 : walk.at
    if (path.length - at < 96 + 64) return forged('not a whole number of branches and a leaf')
    if (!step(walk, path, at, rebased)) return forged('a branch does not hash to its parent')
  }
  return checkLeaf(walk, question)
}
