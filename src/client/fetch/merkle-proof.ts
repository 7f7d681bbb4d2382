import { joined, sameBytes } from '../bytes.js'
import { digestBeside, hash256 } from '../hash.js'

/** How transactions' data is cut: 256 KiB, but no piece of less than 32 KiB where two can share the rest. */
const chunkBytesMax = 262_144
const chunkBytesMin = 32_768

/** A leaf that a path leads to: which bytes it covers and what they hash to. */
export interface ProvenLeafBytes {
  readonly dataHash: Uint8Array
  readonly start: number
  readonly end: number
}

function noteOf(offset: number): Uint8Array {
  const bytes = new Uint8Array(32)
  new DataView(bytes.buffer).setBigUint64(24, BigInt(offset))
  return bytes
}

/** Beyond 2^53 a note is behind everything; only its order matters. */
function readNote(bytes: Uint8Array): number {
  return bytes.reduce((value, byte) => value * 256 + byte, 0)
}

function branchHash(left: Uint8Array, right: Uint8Array, note: Uint8Array): Uint8Array {
  return hash256(hash256(left), hash256(right), hash256(note))
}

const zeros = new Uint8Array(32)

/**
 * Follows a data_path from a data root to the chunk that covers byte `target` of `size`; undefined where it proves nothing. A
 * branch behind 32 zero bytes begins a subtree whose offsets start at 0 again.
 */
export function chunkProven(
  root: Uint8Array,
  path: Uint8Array,
  target: number,
  size: number,
): ProvenLeafBytes | undefined {
  const leaf = leafProven(root, path, target, size, true)
  return leaf !== undefined && leaf.end - leaf.start <= chunkBytesMax ? leaf : undefined
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
): ProvenLeafBytes | undefined {
  return leafProven(root, path, target, size, false)
}

function leafProven(
  root: Uint8Array,
  path: Uint8Array,
  target: number,
  size: number,
  mayRebase: boolean,
): ProvenLeafBytes | undefined {
  let [id, at, left, right, aim, shift] = [root, 0, 0, size, target, 0]
  if (!(target >= 0 && target < size) || path.length > chunkBytesMax) return undefined
  while (path.length - at !== 64) {
    const isRebased = mayRebase && sameBytes(path.subarray(at, at + 32), zeros)
    if (isRebased) at += 32
    if (path.length - at < 160) return undefined
    const [one, other, note] = [0, 32, 64].map((from) => path.subarray(at + from, at + from + 32))
    if (one === undefined || other === undefined || note === undefined) return undefined
    if (!sameBytes(branchHash(one, other, note), id)) return undefined
    const border = readNote(note)
    at += 96
    id = aim < border ? one : other
    if (aim < border) right = Math.min(right, border)
    else if (isRebased) {
      const begin = Math.max(left, border)
      ;[left, right, aim, shift] = [0, right - begin, aim - begin, shift + begin]
    } else left = Math.max(left, border)
  }
  const [dataHash, note] = [path.slice(at, at + 32), path.subarray(at + 32)]
  if (!sameBytes(hash256(hash256(dataHash), hash256(note)), id)) return undefined
  const end = Math.min(right, readNote(note))
  if (end <= left) return undefined
  return { dataHash, start: shift + left, end: shift + end }
}

function nextChunkBytes(rest: number): number {
  if (rest < chunkBytesMax) return rest
  const after = rest - chunkBytesMax
  return after > 0 && after < chunkBytesMin ? Math.ceil(rest / 2) : chunkBytesMax
}

interface Leaf {
  readonly id: Uint8Array
  readonly end: number
}

/** The data root of `length` bytes that come in pieces. Chunks are hashed while the rest is on its way. */
export class RunningDataRoot {
  readonly #leaves: Promise<Leaf>[] = []
  #chunk: Uint8Array<ArrayBuffer>
  #filled = 0
  #came = 0

  constructor(private readonly length: number) {
    this.#chunk = new Uint8Array(nextChunkBytes(length))
  }

  /** Not more than `length` bytes in all. */
  update(piece: Uint8Array): void {
    for (let at = 0; at < piece.length; ) {
      const taken = Math.min(this.#chunk.length - this.#filled, piece.length - at)
      this.#chunk.set(piece.subarray(at, at + taken), this.#filled)
      this.#filled += taken
      this.#came += taken
      at += taken
      if (this.#filled === this.#chunk.length) this.#next()
    }
  }

  #next(): void {
    const [chunk, end] = [this.#chunk, this.#came]
    const leaf = digestBeside('sha256', chunk).then((hashed) => ({
      id: hash256(hash256(hashed), hash256(noteOf(end))),
      end,
    }))
    // Awaited with the others when all bytes are here.
    leaf.catch((error) => error)
    this.#leaves.push(leaf)
    this.#chunk = new Uint8Array(nextChunkBytes(this.length - this.#came))
    this.#filled = 0
  }

  /** Once, behind the last byte. */
  async root(): Promise<Uint8Array> {
    // Behind data whose last chunk is full stands a leaf of no bytes.
    if (this.length % chunkBytesMax === 0 || this.#leaves.length === 0) this.#next()
    let layer = await Promise.all(this.#leaves)
    while (layer.length > 1) {
      layer = layer.flatMap((node, index) => {
        if (index % 2 === 1) return []
        const other = layer[index + 1]
        if (other === undefined) return [node]
        return [{ id: branchHash(node.id, other.id, noteOf(node.end)), end: other.end }]
      })
    }
    return layer[0]?.id ?? joined()
  }
}
