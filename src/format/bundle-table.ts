/**
 * A bundle (ANS-104): 32-byte little-endian count of items; for each item its 32-byte little-endian size and its id;
 * then the items in the same order, without gaps. No items: 32 zero bytes.
 */
export const bundleCountSize = 32
export const bundleEntrySize = 64

/** A 32-byte little-endian number: a safe integer, or undefined beyond 2^53. */
export function readBundleNumber(bytes: Uint8Array, at: number): number | undefined {
  let value = 0
  for (let i = 31; i >= 0; i--) {
    value = value * 256 + (bytes[at + i] ?? 0)
    if (value > Number.MAX_SAFE_INTEGER) return undefined
  }
  return value
}

/** Writes a number into 32 bytes that are zero. */
export function putBundleNumber(into: Uint8Array, value: number, at: number): void {
  let rest = value
  for (let i = at; rest > 0; i += 1) {
    into[i] = rest % 256
    rest = Math.floor(rest / 256)
  }
}
