/** What clients of the protocol expect: bytes of a part. */
export const chunkBytes = { min: 5_242_880, max: 524_288_000, usual: 25_000_000 }

/** The size of parts that a client wants, as it wrote it; undefined: there are none of that size. */
export function readChunkBytes(wanted: string | null): number | undefined {
  const size = wanted === null ? chunkBytes.usual : Number(wanted)
  return Number.isInteger(size) && size >= chunkBytes.min && size <= chunkBytes.max ? size : undefined
}
