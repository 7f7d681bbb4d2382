/**
 * Base64url without padding (RFC 4648 section 5), accepted in canonical form only: a text whose last character has
 * unused bits set decodes to the same bytes as another text, but an id must have exactly one spelling.
 */

const shape = /^[A-Za-z0-9_-]*$/

/** The base64url text of `bytes`, without padding. */
export function encodeBase64url(bytes: Uint8Array): string {
  const view = bytes instanceof Buffer ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return view.toString('base64url')
}

/** The bytes of a canonical base64url text, or undefined where the text is not canonical. */
export function decodeBase64url(text: string): Uint8Array | undefined {
  if (!shape.test(text) || text.length % 4 === 1) return undefined
  const bytes = Buffer.from(text, 'base64url')
  return bytes.toString('base64url') === text ? bytes : undefined
}
