import { createPublicKey, hash, verify } from 'node:crypto'
import { loadAddon } from '../addon.js'

interface Addon {
  verify(key: Uint8Array, signature: Uint8Array, digest: Uint8Array): boolean
}

const addon = loadAddon<Addon>('ed25519')

/** Which way is taken here: the addon, or node:crypto where it was not built. */
export const verifiedBy: 'addon' | 'twin' = addon === undefined ? 'twin' : 'addon'

const keyBytes = 32
const signatureBytes = 64

/**
 * Whether this is an Ed25519 signature (RFC 8032, 64 bytes) of `message` by `key` (32 bytes). Of other lengths: false. Both ways
 * accept the same: without the cofactor, s below the order, R in its one canonical form, and any encoding of the key that
 * OpenSSL decodes. Keys of small order are the caller's to refuse.
 */
export function verifyEd25519(key: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  if (key.length !== keyBytes || signature.length !== signatureBytes) return false
  if (addon === undefined) return verifyEd25519ByTwin(key, message, signature)
  const signed = Buffer.concat([signature.subarray(0, 32), key, message])
  return addon.verify(key, signature, hash('sha512', signed, 'buffer'))
}

/** The same by node:crypto. */
export function verifyEd25519ByTwin(key: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(key).toString('base64url') }
  return verify(null, message, createPublicKey({ key: jwk, format: 'jwk' }), signature)
}
