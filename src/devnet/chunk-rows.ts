import { type Writing, wholeKey } from './devnet-rows.js'

/** A chunk and the proof that leads to it from the data root. */
export interface ChunkRow {
  readonly chunk: Uint8Array
  readonly dataPath: Uint8Array
}

/** Chunks are stored by data root, so that transactions with the same data share them. */
export interface ChunkKey {
  /** Data root, 32 bytes. */
  readonly root: Uint8Array
  /** Bytes of the whole data. */
  readonly size: number
  /** Where the chunk ends in the data. */
  readonly end: number
}

/** Key: root, size and end (8 bytes big-endian each). Value: length of the path (4 bytes big-endian), path, chunk. */
export const chunkWriting: Writing<ChunkKey, ChunkRow> = {
  key: ({ root, size, end }) => Buffer.concat([root, wholeKey.key(size), wholeKey.key(end)]),
  keyOf: (bytes) => ({
    root: bytes.subarray(0, 32),
    size: wholeKey.keyOf(bytes.subarray(32, 40)),
    end: wholeKey.keyOf(bytes.subarray(40, 48)),
  }),
  value: ({ chunk, dataPath }) => {
    const length = Buffer.alloc(4)
    length.writeUInt32BE(dataPath.length)
    return Buffer.concat([length, dataPath, chunk])
  },
  valueOf: (bytes) => {
    const end = 4 + Buffer.from(bytes.buffer, bytes.byteOffset, 4).readUInt32BE()
    return { dataPath: bytes.subarray(4, end), chunk: bytes.subarray(end) }
  },
}
