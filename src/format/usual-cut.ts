import { chunkSizeMax, chunkSizeMin, nextChunkSize } from './chunk.js'

/**
 * Where the chunk that holds byte `at` ends, if the data was cut in the usual way: only a guess for reading ahead, since
 * nothing forbids another cut.
 */
export function usualEnd(at: number, sizeBytes: number): number {
  const base = Math.floor(at / chunkSizeMax) * chunkSizeMax
  const before = sizeBytes - (base - chunkSizeMax)
  // The last two chunks share what is left, so that neither is tiny; the border between them is off the grid.
  if (base > 0 && before > chunkSizeMax && before < chunkSizeMax + chunkSizeMin) return sizeBytes
  const end = base + nextChunkSize(sizeBytes - base)
  return at < end ? end : sizeBytes
}

/** Where it begins, likewise. */
export function usualStart(at: number, sizeBytes: number): number {
  const base = Math.floor(at / chunkSizeMax) * chunkSizeMax
  const border = usualEnd(base, sizeBytes)
  if (at >= border) return border
  if (base === 0 || usualEnd(base - 1, sizeBytes) === base) return base
  return usualStart(base - 1, sizeBytes)
}
