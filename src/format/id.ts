import { decodeCanonical, encodeBase64url } from './base64url.js'

declare const brand: unique symbol

/**
 * The id of a transaction or data item: SHA-256 of its signature, as 43 characters of canonical base64url.
 * Parsed once at the border; inside the program a string of this type is always valid.
 */
export type Id = string & { readonly [brand]: 'id' }

/** 42 characters carry 252 bits; the last may only carry the 4 that are left. */
const shape = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/

/** Whether a text is 43 characters of canonical base64url. */
export function isId(text: string): text is Id {
  return shape.test(text)
}

/** The id spelled by `text`, or undefined where it is not 43 characters of canonical base64url. */
export function parseId(text: string): Id | undefined {
  return isId(text) ? text : undefined
}

/** The id whose 32 bytes are given. Throws a RangeError on any other length: that is a bug of the caller. */
export function idOfBytes(bytes: Uint8Array): Id {
  if (bytes.length !== 32) throw new RangeError(`an id has 32 bytes, not ${bytes.length}`)
  return encodeBase64url(bytes) as Id
}

/** The 32 bytes of an id. */
export function idBytes(id: Id): Uint8Array {
  return decodeCanonical(id)
}
