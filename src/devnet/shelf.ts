import type { ChunkRow } from './chunk-rows.js'
import type { Ledger } from './ledger.js'

/** A chunk and where it ends in its transaction's data. */
export interface Shelved extends ChunkRow {
  readonly end: number
}

/** The chunk that holds byte `offset` (0-based) of the data with this root (base64url) and size. */
export function shelved(ledger: Ledger, dataRoot: string, size: number, offset: number): Shelved | undefined {
  const root = Buffer.from(dataRoot, 'base64url')
  const [found] = ledger.chunks.from({ root, size, end: offset + 1 }, 1)
  if (found === undefined || found.key.size !== size || !root.equals(found.key.root)) return undefined
  const { end } = found.key
  return end - found.value.chunk.length <= offset ? { ...found.value, end } : undefined
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
