import type { ChunkKey, ChunkRow, Ledger } from './ledger.js'

/** A chunk and where it ends in its transaction's data. */
export interface Shelved extends ChunkRow {
  readonly end: number
}

/** The chunk that holds byte `offset` (0-based) of the data with this root and size. */
export function shelved(ledger: Ledger, root: string, size: number, offset: number): Shelved | undefined {
  const start: ChunkKey = [root, size, offset + 1]
  const end: ChunkKey = [root, size, size + 1]
  for (const { key, value } of ledger.chunks.getRange({ start, end, limit: 1 })) {
    if (key[2] - value.chunk.length <= offset) return { ...value, end: key[2] }
  }
  return undefined
}

/** All bytes of the data in order, read as they are taken; undefined where a part is missing. */
export function wholeData(ledger: Ledger, root: string, size: number): Iterable<Uint8Array> | undefined {
  for (let at = 0; at < size; ) {
    const found = shelved(ledger, root, size, at)
    if (found === undefined) return undefined
    at = found.end
  }
  return pieces(ledger, root, size)
}

function* pieces(ledger: Ledger, root: string, size: number): Generator<Uint8Array> {
  for (let at = 0; at < size; ) {
    const found = shelved(ledger, root, size, at)
    if (found === undefined) return
    yield found.chunk
    at = found.end
  }
}
