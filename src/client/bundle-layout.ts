import { decodeBase64url } from '../format/base64url.js'
import { bundleCountSize, bundleEntrySize, putBundleNumber } from '../format/bundle-table.js'
import { joined } from '../format/bytes.js'

/** The tags that make an item a bundle of items. */
export const bundleTags = [
  { name: 'Bundle-Format', value: 'binary' },
  { name: 'Bundle-Version', value: '2.0.0' },
] as const

/** A bundle (format/bundle-table.ts) of items in this order. */
export function packBundle(
  items: readonly { readonly id: string; readonly bytes: Uint8Array }[],
): Uint8Array {
  const table = new Uint8Array(bundleCountSize + bundleEntrySize * items.length)
  putBundleNumber(table, items.length, 0)
  for (const [entry, { id, bytes }] of items.entries()) {
    const at = bundleCountSize + bundleEntrySize * entry
    putBundleNumber(table, bytes.length, at)
    table.set(decodeBase64url(id) ?? [], at + 32)
  }
  return joined(table, ...items.map(({ bytes }) => bytes))
}

/** Bytes of a bundle of items of these sizes. */
export function packedSizeOf(itemBytes: readonly number[]): number {
  return itemBytes.reduce((sum, bytes) => sum + bundleEntrySize + bytes, bundleCountSize)
}
