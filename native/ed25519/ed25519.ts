import { createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import { loadAddon } from '../addon.js'

declare const borrowedBrand: unique symbol
/** A private key for the server, which signs answers from its response cache: see native/borrowed-key.h. */
export type BorrowedKey = { readonly [borrowedBrand]: true }

interface Addon {
  verify(key: Uint8Array, signature: Uint8Array, message: Uint8Array): boolean
  expand(seed: Uint8Array, secret: Uint8Array): void
  sign(secret: Uint8Array, message: Uint8Array, signature: Uint8Array): void
  lend(secret: Uint8Array): BorrowedKey
}

const addon = loadAddon<Addon>('ed25519')

/** Which way is taken here: the addon, or node:crypto where it was not built. */
export const verifiedBy: 'addon' | 'fallback' = addon === undefined ? 'fallback' : 'addon'

const keyBytes = 32
const signatureBytes = 64
const seedBytes = 32
const secretBytes = 96

/**
 * Whether this is an Ed25519 signature (RFC 8032, 64 bytes) of `message` by `key` (32 bytes). Of other lengths: false. Both ways
 * accept the same: without the cofactor, s below the order, R in its one canonical form, and any encoding of the key that
 * OpenSSL decodes. Keys of small order are the caller's to refuse: node:crypto of Node 24 refuses them, older ones do not.
 */
export function verifyEd25519(key: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  if (key.length !== keyBytes || signature.length !== signatureBytes) return false
  if (addon === undefined) return verifyEd25519ByFallback(key, message, signature)
  return addon.verify(key, signature, message)
}

/** The same by node:crypto. */
export function verifyEd25519ByFallback(
  key: Uint8Array,
  message: Uint8Array,
  signature: Uint8Array,
): boolean {
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(key).toString('base64url') }
  return verify(null, message, createPublicKey({ key: jwk, format: 'jwk' }), signature)
}

/** Signs messages (RFC 8032): 64 bytes each. */
export type SignEd25519 = (message: Uint8Array) => Buffer

/** A signer with this private key. Throws where the addon would sign otherwise than node:crypto does. */
export function ed25519SignerOf(privateKey: KeyObject): SignEd25519 {
  const byFallback: SignEd25519 = (message) => sign(null, message, privateKey)
  if (addon === undefined) return byFallback
  const { sign: signInto } = addon
  const secret = secretOf(addon, privateKey)
  const signed: SignEd25519 = (message) => {
    const signature = Buffer.allocUnsafe(signatureBytes)
    signInto(secret, message, signature)
    return signature
  }
  const probe = Buffer.from('a key signs this once, to be compared')
  if (!signed(probe).equals(byFallback(probe)))
    throw new Error('native/ed25519 does not sign as node:crypto does')
  return signed
}

function secretOf({ expand }: Addon, privateKey: KeyObject): Buffer {
  // The seed ends the key's encoding (RFC 8410, section 7).
  const encoded = privateKey.export({ format: 'der', type: 'pkcs8' })
  const secret = Buffer.alloc(secretBytes)
  expand(encoded.subarray(-seedBytes), secret)
  encoded.fill(0)
  return secret
}

/** The same key for the server. Undefined without the addon. */
export function borrowedKeyOf(privateKey: KeyObject): BorrowedKey | undefined {
  if (addon === undefined) return undefined
  const secret = secretOf(addon, privateKey)
  const borrowed = addon.lend(secret)
  secret.fill(0)
  return borrowed
}
