/**
 * A copy of `bytes` from `start` to `end` in memory of its own. `slice` is no way to get one: a Buffer's shares the memory,
 * and what a stream or a mapping lends is gone or different a moment later.
 */
export function copyOf(bytes: Uint8Array, start: number, end: number): Uint8Array {
  return new Uint8Array(bytes.subarray(start, end))
}
