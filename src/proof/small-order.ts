import { encodeHex } from '../format/hex.js'

/**
 * The encodings of points of small order, sign bit off. For such a key a signature of zeros is valid for at least
 * every fourth message, so anybody can sign for it. The unused slots of a type-6 owner are one of them.
 */
const smallOrder: ReadonlySet<string> = new Set([
  '00'.repeat(32),
  `01${'00'.repeat(31)}`,
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  ...['ec', 'ed', 'ee'].map((first) => `${first}${'ff'.repeat(30)}7f`),
])

/**
 * Whether anybody can sign for this key of Ed25519 (32 bytes), and so put other content under the id of an item by it. Platforms
 * differ in whether they accept such keys.
 */
export function isSmallOrder(key: Uint8Array): boolean {
  const y = Uint8Array.from(key)
  y[31] = (y[31] ?? 0) & 0x7f
  return smallOrder.has(encodeHex(y))
}
