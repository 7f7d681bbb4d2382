import { decodeBase64url } from '../format/base64url.js'
import { chunkSizeMax } from '../format/chunk.js'
import { isRefusal } from '../format/refusal.js'
import { proveChunk, type Ruleset } from './path.js'

/** A chunk as somebody posts it, proven against the data root that it names. */
export interface PostedChunk {
  readonly chunk: Uint8Array
  readonly dataPath: Uint8Array
  readonly dataRoot: Uint8Array
  readonly dataSize: number
  /** Where it lies in the data, `end` exclusive. */
  readonly start: number
  readonly end: number
}

/**
 * The error codes with which nodes refuse a chunk. Client libraries give up on some of them and retry on others, so
 * they must be the same here.
 */
export type ChunkFault =
  | 'invalid_json'
  | 'data_size_too_big'
  | 'offset_too_big'
  | 'chunk_too_big'
  | 'data_path_too_big'
  | 'invalid_proof'

/** Nodes refuse longer proofs (MAX_PATH_SIZE). */
const pathMax = 262_144

/**
 * Reads the JSON of `POST /chunk`: `chunk`, `data_path` and `data_root` in base64url, `data_size` and `offset` (of
 * any byte of the chunk in the data, from 0) as decimal text or numbers. Gives the chunk where `ruleset` proves it,
 * or the error code that a node would answer.
 */
export function readPostedChunk(json: unknown, ruleset: Ruleset): PostedChunk | ChunkFault {
  if (typeof json !== 'object' || json === null) return 'invalid_json'
  const fields = json as Record<string, unknown>
  const chunk = bytesOf(fields.chunk)
  const dataPath = bytesOf(fields.data_path)
  const dataRoot = bytesOf(fields.data_root)
  if (chunk === undefined || dataPath === undefined || dataRoot === undefined) return 'invalid_json'
  const dataSize = wholeOf(fields.data_size)
  if (dataSize === undefined) return 'data_size_too_big'
  const offset = wholeOf(fields.offset)
  if (offset === undefined || offset >= dataSize) return 'offset_too_big'
  if (chunk.length > chunkSizeMax) return 'chunk_too_big'
  if (dataPath.length > pathMax) return 'data_path_too_big'
  const proven = proveChunk({ chunk, dataPath, dataRoot, dataSize, offset, ruleset })
  if (isRefusal(proven) || dataRoot.length !== 32) return 'invalid_proof'
  return { chunk, dataPath, dataRoot, dataSize, start: proven.start, end: proven.end }
}

function bytesOf(value: unknown): Uint8Array | undefined {
  return typeof value === 'string' ? decodeBase64url(value) : undefined
}

function wholeOf(value: unknown): number | undefined {
  const number = typeof value === 'string' && /^[0-9]{1,16}$/.test(value) ? Number(value) : value
  return typeof number === 'number' && Number.isSafeInteger(number) && number >= 0 ? number : undefined
}
