import type { Bytes } from '../format/bytes.js'

export { type Bytes, joined, sameBytes, textOfBytes, utf8 } from '../format/bytes.js'

/** The same bytes as a type that WebCrypto and fetch take: copied only where the memory is shared. */
export function plainBytes(bytes: Uint8Array): Bytes {
  return bytes.buffer instanceof ArrayBuffer ? (bytes as Bytes) : new Uint8Array(bytes)
}
