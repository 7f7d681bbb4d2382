import { joined, sameBytes } from '../bytes.js'
import { hash256 } from '../hash.js'

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
  let [id, at, left, right, aim, shift] = [root, 0, 0, size, target, 0]
  if (target < 0 || target >= size || path.length > chunkBytesMax) return undefined
  while (path.length - at !== 64) {
    const isRebased = sameBytes(path.subarray(at, at + 32), zeros)
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
  if (end - left > chunkBytesMax || end <= left) return undefined
  return { dataHash, start: shift + left, end: shift + end }
}

function nextChunkBytes(rest: number): number {
  if (rest < chunkBytesMax) return rest
  const after = rest - chunkBytesMax
  return after > 0 && after < chunkBytesMin ? Math.ceil(rest / 2) : chunkBytesMax
}

/** The data root of bytes at hand. */
export function dataRootOf(data: Uint8Array): Uint8Array {
  let layer: { id: Uint8Array; end: number }[] = []
  const leaf = (from: number, to: number): void => {
    const note = noteOf(to)
    layer.push({ id: hash256(hash256(hash256(data.subarray(from, to))), hash256(note)), end: to })
  }
  let at = 0
  for (let rest = data.length; rest >= chunkBytesMax; rest = data.length - at) {
    const size = nextChunkBytes(rest)
    leaf(at, at + size)
    at += size
  }
  leaf(at, data.length)
  while (layer.length > 1) {
    layer = layer.flatMap((node, index) => {
      if (index % 2 === 1) return []
      const other = layer[index + 1]
      return [
        other === undefined ? node : { id: branchHash(node.id, other.id, noteOf(node.end)), end: other.end },
      ]
    })
  }
  return layer[0]?.id ?? joined()
}
