import { fromBase64url, joined } from './bytes.js'

/** The tags that make an item a bundle of items. */
export const bundleTags = [
  { name: 'Bundle-Format', value: 'binary' },
  { name: 'Bundle-Version', value: '2.0.0' },
] as const

function number32(value: number): Uint8Array {
  const bytes = new Uint8Array(32)
  new DataView(bytes.buffer).setBigUint64(0, BigInt(value), true)
  return bytes
}

/** A bundle (ANS-104): count and entries of size and id, 32 bytes each, then the items in the same order. */
export function packBundle(
  items: readonly { readonly id: string; readonly bytes: Uint8Array }[],
): Uint8Array {
  const entries = items.flatMap(({ id, bytes }) => [
    number32(bytes.length),
    fromBase64url(id) ?? new Uint8Array(32),
  ])
  return joined(number32(items.length), ...entries, ...items.map(({ bytes }) => bytes))
}

/** Bytes of a bundle of items of these sizes. */
export function packedSizeOf(itemBytes: readonly number[]): number {
  return itemBytes.reduce((sum, bytes) => sum + 64 + bytes, 32)
}
