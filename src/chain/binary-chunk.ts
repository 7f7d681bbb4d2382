import type { ChunkParts } from './node-answers.js'

/**
 * `GET /chunk2/{offset}`: what `/chunk` says as JSON, as bytes. Four fields, each behind its length in big-endian bytes: chunk (3
 * bytes of length), tx_path (3), data_path (3), packing as text (1). Nodes have answered it since 2.5.
 */

const chunkMax = 262_144
/** Nodes refuse longer proofs (MAX_PATH_SIZE). */
const pathMax = 262_144
const pathMin = 64

/** Most bytes of such an answer. */
export const binaryChunkMax = 3 * 3 + chunkMax + 2 * pathMax + 1 + 255

/** The chunk in an answer, in views of it; undefined where it is none, or a packed one. What follows it is not looked at. */
export function readBinaryChunk(bytes: Buffer): ChunkParts | undefined {
  const chunk = fieldAt(bytes, 0, 3)
  const txPath = chunk === undefined ? undefined : fieldAt(bytes, chunk.end, 3)
  const dataPath = txPath === undefined ? undefined : fieldAt(bytes, txPath.end, 3)
  const packing = dataPath === undefined ? undefined : fieldAt(bytes, dataPath.end, 1)
  if (chunk === undefined || txPath === undefined || dataPath === undefined || packing === undefined)
    return undefined
  if (packing.bytes.toString('latin1') !== 'unpacked') return undefined
  if (chunk.bytes.length < 1 || chunk.bytes.length > chunkMax || !isPath(dataPath.bytes)) return undefined
  const parts = { chunk: chunk.bytes, dataPath: dataPath.bytes }
  if (txPath.bytes.length === 0) return parts
  return isPath(txPath.bytes) ? { ...parts, txPath: txPath.bytes } : undefined
}

/** The answer that says this; unpacked. */
export function writeBinaryChunk({ chunk, dataPath, txPath }: ChunkParts): Buffer {
  const packing = Buffer.from('unpacked')
  const length = (size: number, bytes: number): Buffer => {
    const out = Buffer.alloc(bytes)
    out.writeUIntBE(size, 0, bytes)
    return out
  }
  const fields = [chunk, txPath ?? new Uint8Array(0), dataPath]
  const long = fields.flatMap((field) => [length(field.length, 3), field])
  return Buffer.concat([...long, length(packing.length, 1), packing])
}

function fieldAt(
  bytes: Buffer,
  at: number,
  lengthBytes: number,
): { readonly bytes: Buffer; readonly end: number } | undefined {
  const start = at + lengthBytes
  if (start > bytes.length) return undefined
  const end = start + bytes.readUIntBE(at, lengthBytes)
  return end > bytes.length ? undefined : { bytes: bytes.subarray(start, end), end }
}

/** A path is branches of 96 or 128 bytes and a leaf of 64. */
function isPath({ length }: Uint8Array): boolean {
  return length >= pathMin && length <= pathMax && length % 32 === 0
}
