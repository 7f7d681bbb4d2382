import { pause } from '../actor/clock.js'
import type { LmdbCatalog } from '../catalog/reader.js'
import type { Id } from '../format/id.js'
import type { BundleSpan } from '../format/reading-place.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import { openBlobRoot } from '../source/roots/blob-root.js'
import type { OpenRoot } from '../source/roots/items.js'
import type { RootBytes } from '../source/roots/root-bytes.js'
import type { Transactions } from '../source/roots/transaction-headers.js'
import type { Source } from '../source/source.js'
import type { BlobStore } from '../store/blobs.js'
import { missingByte } from './bundle-probe.js'
import type { KeptBundles } from './kept-bundles.js'

/**
 * The data of a transaction (all of it, or the parts that were requested), in order, to be read once; the last element may be a
 * refusal. Leaving the iteration releases everything.
 */
export interface RootStream {
  /** Bytes of all data. */
  readonly sizeBytes: number
  readonly bytes: AsyncIterable<Uint8Array | Refusal>
  /** SHA-256 of all bytes: they lie in the store under this name. Absent: they are not in the store. */
  readonly digest?: Uint8Array
}

/**
 * A stream that breaks is resumed at the byte where it broke. So many failures in a row without a byte in between are
 * allowed; the pauses between them grow.
 */
const resumesMax = 4
const resumeMs = 500

export interface BundleBytesParts {
  readonly catalog: LmdbCatalog
  readonly store: BlobStore
  readonly transactions: Transactions
  readonly openRoot: OpenRoot
  /** The source of what has no chunks to prove (format 1). */
  readonly whole: Source
  /** Absent: nothing is kept. */
  readonly kept?: Pick<KeptBundles, 'bring'>
}

/** The parts that are read of data with so many bytes. */
export type ReadParts = (sizeBytes: number) => readonly BundleSpan[]

/** How a bundle is opened, by what is known of earlier looks. */
export interface BundleLook {
  /** A byte that nodes did not have at the last look. */
  readonly missing?: number | undefined
  /** All sources get a request for the whole bundle before a node gets one for a chunk. */
  readonly bringsFirst: boolean
  /** What is read of it; absent: all. Parts are brought into the store, or probed, only where a byte was missing. */
  readonly parts?: ReadParts | undefined
  /** Called with the offset of a byte that could not be had. */
  broke(at: number): void
}

/** The whole data. */
const whole: ReadParts = (sizeBytes) => [{ start: 0, end: sizeBytes }]

/**
 * Opens the data of transactions to be unbundled. It comes from the store where it is proven there or can be fetched into it.
 * Else it comes chunk by chunk from nodes, each proven before its first byte is returned. Nothing is written to disk then,
 * because a bundle may be larger than the store. Where nodes lack the chunk that `missingByte` requests, nothing else is
 * read from them.
 */
export function bundleBytes({ catalog, store, transactions, openRoot, whole: all, kept }: BundleBytesParts) {
  const openProven = async (
    id: Id,
    look: BundleLook,
    signal: AbortSignal,
  ): Promise<RootStream | undefined> => {
    const blob = await openBlobRoot(id, catalog, store)
    if (isRefusal(blob)) return undefined
    if (blob.proven) return { ...streamOf(blob, look, signal), digest: blob.digest }
    await blob.close()
    return undefined
  }
  const bring = async (id: Id, look: BundleLook, signal: AbortSignal): Promise<RootStream | undefined> => {
    if (kept === undefined) return undefined
    await kept.bring(id, signal)
    return openProven(id, look, signal)
  }
  const openWhole = async (id: Id, look: BundleLook, signal: AbortSignal): Promise<RootStream | Refusal> => {
    const provenance = { hops: 0, via: [], forward: false }
    const found = await all.open({ id, hints: {}, provenance, avoid: new Set() }, signal)
    if (isRefusal(found)) return found
    const { sizeBytes, body } = found
    return { sizeBytes, bytes: look.parts === undefined ? body : within(body, look.parts(sizeBytes)) }
  }
  /** In the store, or at nodes whose chunks were not missing. */
  const openOnce = async (id: Id, look: BundleLook, signal: AbortSignal): Promise<RootStream | Refusal> => {
    const here = await openProven(id, look, signal)
    if (here !== undefined) return here
    // A fork may have moved it since the last look.
    transactions.forget(id)
    // What is read on after a pause was not brought before, and nothing of it was missing.
    const isAnew = look.parts === undefined || look.missing !== undefined
    const brought = isAnew && look.bringsFirst ? await bring(id, look, signal) : undefined
    if (brought !== undefined) return brought
    const root = await openRoot(id, { signal })
    let given: RootBytes | undefined
    try {
      const lacking = isRefusal(root) || !isAnew ? undefined : await missingByte(root, look.missing, signal)
      if (lacking !== undefined) {
        look.broke(lacking.at)
        return lacking.refusal
      }
      const later = isAnew && !look.bringsFirst ? await bring(id, look, signal) : undefined
      if (later !== undefined) return later
      if (isRefusal(root)) return root.refused === 'unknown' ? await openWhole(id, look, signal) : root
      given = root
      return streamOf(root, look, signal)
    } finally {
      if (!isRefusal(root) && given === undefined) await root.close()
    }
  }
  return async (id: Id, look: BundleLook, signal: AbortSignal): Promise<RootStream | Refusal> => {
    const opened = await openOnce(id, look, signal)
    return isRefusal(opened) ? opened : watchedStream(opened, look)
  }
}

/** The same stream; `broke` is called with the offset of the first byte that could not be had. */
function watchedStream(root: RootStream, { parts = whole, broke }: BundleLook): RootStream {
  return { ...root, bytes: watched(root.bytes, parts(root.sizeBytes), broke) }
}

async function* watched(
  bytes: RootStream['bytes'],
  parts: readonly BundleSpan[],
  broke: (at: number) => void,
): AsyncGenerator<Uint8Array | Refusal, undefined> {
  let count = 0
  for await (const piece of bytes) {
    if (isRefusal(piece)) broke(offsetIn(parts, count))
    else count += piece.length
    yield piece
  }
  return undefined
}

/** Where the byte lies that follows the first `count` bytes of these parts. */
function offsetIn(parts: readonly BundleSpan[], count: number): number {
  let left = count
  for (const { start, end } of parts) {
    if (left < end - start) return start + left
    left -= end - start
  }
  return parts.at(-1)?.end ?? 0
}

/** These parts of bytes that cannot be read at any place. */
async function* within(
  bytes: RootStream['bytes'],
  parts: readonly BundleSpan[],
): AsyncGenerator<Uint8Array | Refusal, undefined> {
  let at = 0
  for await (const piece of bytes) {
    if (isRefusal(piece)) {
      yield piece
      return undefined
    }
    for (const { start, end } of parts) {
      const [from, to] = [Math.max(start - at, 0), Math.min(end - at, piece.length)]
      if (from < to) yield piece.subarray(from, to)
    }
    at += piece.length
  }
  return undefined
}

function streamOf(root: RootBytes, { parts = whole }: BundleLook, signal: AbortSignal): RootStream {
  return { sizeBytes: root.sizeBytes, bytes: closing(root, parts(root.sizeBytes), signal) }
}

async function* closing(
  root: RootBytes,
  parts: readonly BundleSpan[],
  signal: AbortSignal,
): AsyncGenerator<Uint8Array | Refusal, undefined> {
  try {
    for (const part of parts)
      for await (const piece of resumed(root, part, signal)) {
        yield piece
        if (isRefusal(piece)) return undefined
      }
  } finally {
    await root.close()
  }
  return undefined
}

/** A part of the data, resumed where it breaks; the last element may be a refusal. */
async function* resumed(
  root: RootBytes,
  { start, end }: BundleSpan,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array | Refusal, undefined> {
  if (start >= end) return undefined
  let at = start
  for (let failures = 0; ; failures += 1) {
    let broken: Refusal | undefined
    for await (const piece of root.stream(at, end, signal)) {
      if (isRefusal(piece)) broken = piece
      else {
        at += piece.length
        failures = 0
        yield piece
      }
    }
    if (broken === undefined) return undefined
    // Bytes that cannot be proven may be the only ones that exist, so they are not fetched again. A node that did
    // not answer may answer later.
    const isPassing = broken.refused === 'upstream' || broken.refused === 'late'
    if (!isPassing || failures === resumesMax || signal.aborted) {
      yield broken
      return undefined
    }
    await pause(resumeMs * (failures + 1), signal)
  }
}
