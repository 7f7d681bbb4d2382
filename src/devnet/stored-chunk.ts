import type { ChainStore } from './chain-store.js'
import type { ChunkRow } from './chunk-rows.js'

/** A chunk and where it ends in its transaction's data. */
export interface StoredChunk extends ChunkRow {
  readonly end: number
}

/** The chunk that holds byte `offset` (0-based) of the data with this root (base64url) and size. */
export function storedChunk(
  store: ChainStore,
  dataRoot: string,
  size: number,
  offset: number,
): StoredChunk | undefined {
  const root = Buffer.from(dataRoot, 'base64url')
  const [found] = store.chunks.from({ root, size, end: offset + 1 }, 1)
  if (found === undefined || found.key.size !== size || !root.equals(found.key.root)) return undefined
  const { end } = found.key
  return end - found.value.chunk.length <= offset ? { ...found.value, end } : undefined
}

/** All bytes of the data in order, read as they are taken; undefined where a part is missing. */
export function wholeData(store: ChainStore, root: string, size: number): Iterable<Uint8Array> | undefined {
  for (let at = 0; at < size; ) {
    const found = storedChunk(store, root, size, at)
    if (found === undefined) return undefined
    at = found.end
  }
  return pieces(store, root, size)
}

function* pieces(store: ChainStore, root: string, size: number): Generator<Uint8Array> {
  for (let at = 0; at < size; ) {
    const found = storedChunk(store, root, size, at)
    if (found === undefined) return
    yield found.chunk
    at = found.end
  }
}
