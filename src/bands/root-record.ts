import { PackReader, type PackWriter } from '../format/message-pack.js'

/** Where a data item is, by a root-transaction index. A hint: the bytes there must be checked against the id. */
export interface RootRecord {
  /** Ids (32 bytes each), root first, the direct parent last; only the root where no more is known. 1 to 10. */
  readonly path: readonly Uint8Array[]
  /** Offsets of the item and of its payload in the root's data. Both or neither. */
  readonly itemOffset?: number
  readonly dataOffset?: number
  /** Bytes of header and payload. */
  readonly itemSize?: number
}

/** Bundles in bundles that a record may name. */
export const pathMax = 10

/** A header is never longer; a record with a longer one is left out. */
export const itemHeaderMaxBytes = 1024 * 1024

/** Bytes of the longest record that is written: a path of 10, three double-precision integers. */
export const placeMaxBytes = 512

const letter = { root: 0x72, path: 0x70, item: 0x69, data: 0x64, size: 0x73 }

/**
 * Writes the value of a record: a map of the known values, in this order. Its keys are `r` (root) or `p` (path), `i` and `d`
 * (offsets of item and payload), and `s` (size).
 */
export function writePlace(out: PackWriter, place: RootRecord): void {
  const { path, itemOffset, dataOffset, itemSize } = place
  const [root] = path
  if (root === undefined || path.length > pathMax) throw new RangeError('a path has 1 to 10 ids')
  const hasOffsets = itemOffset !== undefined && dataOffset !== undefined
  out.map(1 + (hasOffsets ? 2 : 0) + (itemSize === undefined ? 0 : 1))
  if (path.length === 1) {
    out.letter(letter.root)
    out.binary(root)
  } else {
    out.letter(letter.path)
    out.array(path.length)
    for (const id of path) out.binary(id)
  }
  if (hasOffsets) {
    out.letter(letter.item)
    out.integer(itemOffset)
    out.letter(letter.data)
    out.integer(dataOffset)
  }
  if (itemSize !== undefined) {
    out.letter(letter.size)
    out.integer(itemSize)
  }
}

/** Reads the value of a record, in views of `bytes`; undefined where it is none. Keys that are not known are passed over. */
export function readPlace(bytes: Uint8Array, start: number, end: number): RootRecord | undefined {
  const read = new PackReader(bytes, start, end)
  const pairs = read.map()
  let path: Uint8Array[] | undefined
  const place: { itemOffset?: number; dataOffset?: number; itemSize?: number } = {}
  for (let pair = 0; pair < pairs && !read.failed; pair += 1) {
    const name = read.letter()
    if (name === letter.root && path === undefined) path = [read.binary(32)]
    else if (name === letter.path && path === undefined) path = readPath(read)
    else if (name === letter.item) place.itemOffset = read.integer()
    else if (name === letter.data) place.dataOffset = read.integer()
    else if (name === letter.size) place.itemSize = read.integer()
    else read.skip()
  }
  if (read.failed || !read.atEnd || path === undefined || path.length === 0) return undefined
  const { itemOffset, dataOffset } = place
  if ((itemOffset === undefined) !== (dataOffset === undefined)) return undefined
  if (itemOffset !== undefined && dataOffset !== undefined && dataOffset <= itemOffset) return undefined
  return { path, ...place }
}

function readPath(read: PackReader): Uint8Array[] {
  const length = read.array()
  if (length > pathMax) return []
  const path: Uint8Array[] = []
  for (let at = 0; at < length && !read.failed; at += 1) path.push(read.binary(32))
  return path
}
