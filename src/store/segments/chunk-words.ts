import { createHash } from 'node:crypto'
import { proveChunk, type Ruleset } from '../../proof/path.js'

/** Which chunk of which data, by which rules it was found true. */
export interface ChunkName {
  readonly dataRoot: Uint8Array
  readonly dataSize: number
  /** Its first byte in the data. */
  readonly start: number
  readonly ruleset: Ruleset
}

/** What a record says of a chunk beside its bytes. */
export interface ChunkWords extends ChunkName {
  readonly dataPath: Uint8Array
}

const rulesets: readonly Ruleset[] = ['basic', 'borders', 'strict', 'rebase']
const version = 1
const nameBytes = 52

/**
 * The meta of a record of kind `chunk`; numbers are little-endian:
 *
 * ```
 *  0  u8   version, 1            12  f64  first byte of the chunk in the data
 *  1  u8   rules, 0 to 3         20  32   data root
 *  2  u16  0                     52  ...  data path
 *  4  f64  bytes of the data
 * ```
 */
export function encodeChunkWords(words: ChunkWords): Buffer {
  const bytes = Buffer.allocUnsafe(nameBytes + words.dataPath.length)
  writeName(bytes, words)
  bytes.set(words.dataPath, nameBytes)
  return bytes
}

function writeName(into: Buffer, { dataRoot, dataSize, start, ruleset }: ChunkName): void {
  into.writeUInt8(version, 0)
  into.writeUInt8(rulesets.indexOf(ruleset), 1)
  into.writeUInt16LE(0, 2)
  into.writeDoubleLE(dataSize, 4)
  into.writeDoubleLE(start, 12)
  into.set(dataRoot, 20)
}

/** The words in these bytes, which they share; undefined where they are none. */
export function decodeChunkWords(meta: Uint8Array): ChunkWords | undefined {
  const bytes = Buffer.from(meta.buffer, meta.byteOffset, meta.byteLength)
  if (bytes.length <= nameBytes || bytes.readUInt8(0) !== version) return undefined
  const ruleset = rulesets[bytes.readUInt8(1)]
  if (ruleset === undefined) return undefined
  const [dataSize, start] = [bytes.readDoubleLE(4), bytes.readDoubleLE(12)]
  return { dataRoot: bytes.subarray(20, 52), dataSize, start, ruleset, dataPath: bytes.subarray(nameBytes) }
}

const together = Buffer.alloc(nameBytes)

/**
 * The 32 bytes that a chunk is found by: SHA-512/256 of what is stated of it. Payloads are found by their SHA-256: by the same
 * hash, a payload of just these words would have the name of the chunk, and anybody can upload it.
 */
export function nameOfChunk(name: ChunkName): Uint8Array {
  writeName(together, name)
  return createHash('sha512-256').update(together).digest()
}

/** Whether the record with this meta and these bytes is the chunk of this name, by its own proof. */
export function provesChunk(name: Uint8Array, meta: Uint8Array, chunk: Uint8Array): boolean {
  const words = decodeChunkWords(meta)
  if (words === undefined || Buffer.compare(nameOfChunk(words), name) !== 0) return false
  const proven = proveChunk({ ...words, chunk, offset: words.start })
  return !('refused' in proven) && proven.start === words.start
}
