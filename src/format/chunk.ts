/**
 * How the network cuts a transaction's data into chunks: pieces of 256 KiB, but so that no piece except a final empty
 * one is smaller than 32 KiB where two can share the rest. Data whose size is an exact multiple of 256 KiB (and data of
 * no bytes) ends with a chunk of no bytes: it is never sent, but it has a leaf in the tree and so changes the data root.
 */
export const chunkSizeMax = 262_144
export const chunkSizeMin = 32_768

/** Bytes of the chunk that starts where `restBytes` bytes are left. */
export function nextChunkSize(restBytes: number): number {
  if (restBytes < chunkSizeMax) return restBytes
  const after = restBytes - chunkSizeMax
  return after > 0 && after < chunkSizeMin ? Math.ceil(restBytes / 2) : chunkSizeMax
}

/** The sizes of all chunks of `sizeBytes` bytes of data, in order, the empty one at the end included. */
export function* chunkSizes(sizeBytes: number): Generator<number, void, void> {
  let rest = sizeBytes
  while (rest >= chunkSizeMax) {
    const size = nextChunkSize(rest)
    yield size
    rest -= size
  }
  yield rest
}
