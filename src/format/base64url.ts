import type { Bytes } from './bytes.js'

/**
 * Base64url without padding (RFC 4648 section 5), accepted in canonical form only: a text whose last character has
 * unused bits set decodes to the same bytes as another text, but an id must have exactly one spelling.
 */

/** Node's own functions, ten times as fast. */
interface NativeBuffers {
  new (): Uint8Array & { toString(encoding: 'base64url'): string }
  from(text: string, encoding: 'base64url'): Bytes
  from(memory: ArrayBufferLike, start: number, length: number): { toString(encoding: 'base64url'): string }
}

/** Loaded by name at run time: an import would have to be resolved by every bundler for browsers. */
function nativeBuffers(): NativeBuffers | undefined {
  const { process } = globalThis as {
    process?: { getBuiltinModule?: (name: string) => { readonly Buffer: NativeBuffers } | undefined }
  }
  return process?.getBuiltinModule?.('node:buffer')?.Buffer
}

const native = nativeBuffers()

const shape = /^[A-Za-z0-9_-]*$/
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const values = new Map([...alphabet].map((char, value) => [char, value]))

/** The base64url text of `bytes`, without padding. */
export function encodeBase64url(bytes: Uint8Array): string {
  if (native === undefined) return encodePlainly(bytes)
  const view = bytes instanceof native ? bytes : native.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return view.toString('base64url')
}

/** The bytes of a canonical base64url text, or undefined where the text is not canonical. */
export function decodeBase64url(text: string): Bytes | undefined {
  if (native === undefined) return decodePlainly(text)
  if (!shape.test(text) || text.length % 4 === 1) return undefined
  const bytes = native.from(text, 'base64url')
  return encodeBase64url(bytes) === text ? bytes : undefined
}

/** The same of a text that is known to be canonical: ids are, which are decoded all the time. */
export function decodeCanonical(text: string): Bytes {
  const bytes = native === undefined ? decodePlainly(text) : native.from(text, 'base64url')
  if (bytes === undefined) throw new TypeError(`not base64url: ${text}`)
  return bytes
}

/** `encodeBase64url` where the platform has nothing for it. */
export function encodePlainly(bytes: Uint8Array): string {
  const parts: string[] = []
  let text = ''
  for (let at = 0; at < bytes.length; at += 3) {
    const left = bytes.length - at
    const group = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0)
    text += alphabet.charAt(group >> 18) + alphabet.charAt((group >> 12) & 63)
    if (left > 1) text += alphabet.charAt((group >> 6) & 63)
    if (left > 2) text += alphabet.charAt(group & 63)
    if (text.length > 8192) {
      parts.push(text)
      text = ''
    }
  }
  return parts.join('') + text
}

/** `decodeBase64url` where the platform has nothing for it. */
export function decodePlainly(text: string): Bytes | undefined {
  if (text.length % 4 === 1) return undefined
  const bytes = new Uint8Array(Math.floor((text.length * 3) / 4))
  let at = 0
  let group = 0
  let bits = 0
  for (const char of text) {
    const value = values.get(char)
    if (value === undefined) return undefined
    group = ((group << 6) | value) & 0xfff
    bits += 6
    if (bits < 8) continue
    bits -= 8
    bytes[at++] = (group >> bits) & 0xff
  }
  return (group & ((1 << bits) - 1)) === 0 ? bytes : undefined
}

/** Standard base64 with padding, as headers and JSON of others have it. */
export function encodeBase64(bytes: Uint8Array): string {
  const text = encodeBase64url(bytes).replaceAll('-', '+').replaceAll('_', '/')
  return text + '='.repeat((4 - (text.length % 4)) % 4)
}

/** The bytes of standard base64, padded or not; undefined where it is none. */
export function decodeBase64(text: string): Bytes | undefined {
  return decodeBase64url(text.replace(/=+$/, '').replaceAll('+', '-').replaceAll('/', '_'))
}
