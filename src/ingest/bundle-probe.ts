import { chunkSizeMax } from '../format/chunk.js'
import type { Id } from '../format/id.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import { openBlobRoot } from '../source/roots/blob-root.js'
import type { BundleBytesParts, RootStream } from './bundle-bytes.js'

/** A byte of a bundle that all nodes stated not to have. */
export interface MissingByte {
  /** From 0. */
  readonly at: number
  readonly refusal: Refusal
}

/** A bundle of so few chunks is read at once: a probe would cost as much. */
const fewBytes = 4 * chunkSizeMax

export type BundleProbe = (
  id: Id,
  missing: number | undefined,
  signal: AbortSignal,
) => Promise<MissingByte | undefined>

/**
 * Requests one chunk before a bundle is read: the one that was missing at the last look (`missing`). Where none was, the last
 * and the first one of a large bundle: whoever posts no chunks, or not all, mostly lacks one of these. Undefined: the bundle is
 * in the store, or nothing is known to be missing. Nodes that are late or busy say nothing about what is missing.
 */
export function bundleProbe(
  parts: Pick<BundleBytesParts, 'catalog' | 'store' | 'transactions' | 'openRoot'>,
): BundleProbe {
  const { catalog, store, transactions, openRoot } = parts
  return async (id, missing, signal) => {
    const blob = await openBlobRoot(id, catalog, store)
    if (!isRefusal(blob)) {
      await blob.close()
      if (blob.proven) return undefined
    }
    // A fork may have moved it since the last look.
    transactions.forget(id)
    const root = await openRoot(id, signal)
    // The opening finds out whether there is another way to its bytes.
    if (isRefusal(root)) return undefined
    try {
      for (const at of placesOf(root.sizeBytes, missing))
        for await (const piece of root.stream(at, at + 1, signal))
          if (isRefusal(piece)) return piece.refused === 'unknown' ? { at, refusal: piece } : undefined
      return undefined
    } finally {
      await root.close()
    }
  }
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

/** The same stream; `broke` is called with the offset of the first byte that could not be had. */
export function watchedStream(root: RootStream, broke: (at: number) => void): RootStream {
  return { ...root, bytes: watched(root.bytes, broke) }
}

async function* watched(
  bytes: RootStream['bytes'],
  broke: (at: number) => void,
): AsyncGenerator<Uint8Array | Refusal, undefined> {
  let at = 0
  for await (const piece of bytes) {
    if (isRefusal(piece)) broke(at)
    else at += piece.length
    yield piece
  }
  return undefined
}
