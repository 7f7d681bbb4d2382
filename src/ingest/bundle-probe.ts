import { chunkSizeMax } from '../format/chunk.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import type { RootBytes } from '../source/roots/root-bytes.js'

/** A byte of a bundle that all nodes stated not to have. */
export interface MissingByte {
  /** From 0. */
  readonly at: number
  readonly refusal: Refusal
}

/** A bundle of so few chunks is read at once: a probe would cost as much. */
const fewBytes = 4 * chunkSizeMax

/**
 * Requests one chunk before a bundle is read: the one that was missing at the last look (`missing`). Where none was, the last
 * and the first one of a large bundle: whoever posts no chunks, or not all, mostly lacks one of these. Undefined: nothing is
 * known to be missing. Nodes that are late or busy say nothing about what is missing.
 */
export async function missingByte(
  root: Pick<RootBytes, 'sizeBytes' | 'stream'>,
  missing: number | undefined,
  signal: AbortSignal,
): Promise<MissingByte | undefined> {
  for (const at of placesOf(root.sizeBytes, missing))
    for await (const piece of root.stream(at, at + 1, signal))
      if (isRefusal(piece)) return piece.refused === 'unknown' ? { at, refusal: piece } : undefined
  return undefined
}

function placesOf(sizeBytes: number, missing: number | undefined): readonly number[] {
  if (missing !== undefined && missing < sizeBytes) return [missing]
  return sizeBytes <= fewBytes ? [] : [sizeBytes - 1, 0]
}

/**
 * Whether the whole bundle is requested of all sources before a chunk is missed: gateways may have what nodes lack. Of the first
 * looks every second does so, then every eighth. `attempts`: looks that failed.
 */
export function bringsFirst(attempts: number): boolean {
  return attempts < 8 ? attempts % 2 === 1 : attempts % 8 === 7
}
