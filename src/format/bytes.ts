/**
 * A copy of `bytes` from `start` to `end` in memory of its own. `slice` of a Buffer does not copy but shares the
 * memory, and the memory of a stream or a mapped file is reused or gone later.
 */
export function copyOf(bytes: Uint8Array, start: number, end: number): Uint8Array {
  return new Uint8Array(bytes.subarray(start, end))
}
