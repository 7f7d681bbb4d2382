import { loadAddon } from '../addon.js'
import {
  isSecp256k1KeyByFallback,
  recoverSecp256k1ByFallback,
  signSecp256k1ByFallback,
  verifySecp256k1ByFallback,
} from './secp256k1-fallback.js'

interface Addon {
  isKey(key: Uint8Array): boolean
  verify(key: Uint8Array, signature: Uint8Array, digest: Uint8Array): boolean
  recover(signature: Uint8Array, recovery: number, digest: Uint8Array, key: Uint8Array): boolean
  sign(secret: Uint8Array, digest: Uint8Array, signature: Uint8Array): boolean
}

const addon = loadAddon<Addon>('secp256k1')

/** Which way is taken here: the addon, or its slower fallback where it was not built. */
export const secp256k1By: 'addon' | 'fallback' = addon === undefined ? 'fallback' : 'addon'

const keyBytes = 65
const signatureBytes = 64
const digestBytes = 32
const secretBytes = 32

/** Whether this is a key: 65 bytes, 4 and both coordinates (SEC 1, 2.3.3), a point of the curve. */
export function isSecp256k1Key(key: Uint8Array): boolean {
  if (key.length !== keyBytes) return false
  return addon === undefined ? isSecp256k1KeyByFallback(key) : addon.isKey(key)
}

/**
 * Whether `signature` (r and s, 64 bytes) is one of `digest` (32 bytes) by `key` (65 bytes). False for a high s: it and its
 * negative would both be valid, and a signed thing would have two ids. False for other lengths, and for what is no key.
 */
export function verifySecp256k1(key: Uint8Array, digest: Uint8Array, signature: Uint8Array): boolean {
  if (key.length !== keyBytes || digest.length !== digestBytes || signature.length !== signatureBytes)
    return false
  return addon === undefined
    ? verifySecp256k1ByFallback(key, digest, signature)
    : addon.verify(key, signature, digest)
}

/**
 * The key (65 bytes, uncompressed) that made `signature` (r and s, 64 bytes) of `digest` (32 bytes); `recovery`, 0 to 3, says
 * which of those that could have. Undefined where none could, for a high s, and for other lengths.
 */
export function recoverSecp256k1(
  digest: Uint8Array,
  signature: Uint8Array,
  recovery: number,
): Uint8Array | undefined {
  const fits = digest.length === digestBytes && signature.length === signatureBytes
  if (!fits || !(recovery === 0 || recovery === 1 || recovery === 2 || recovery === 3)) return undefined
  if (addon === undefined) return recoverSecp256k1ByFallback(digest, signature, recovery)
  const key = new Uint8Array(keyBytes)
  return addon.recover(signature, recovery, digest, key) ? key : undefined
}

/** Signs digests of 32 bytes: r and s, s not above half of the order, and the number that `recoverSecp256k1` takes, 65 bytes. */
export type SignSecp256k1 = (digest: Uint8Array) => Uint8Array

/**
 * Signs by the addon, with nonces made of secret and digest (RFC 6979); undefined where it was not built, or where this is no
 * secret. Whoever takes it compares one signature with another library's first, as `secp256k1SignerOf` does.
 */
export function addonSigner(secret: Uint8Array): SignSecp256k1 | undefined {
  if (addon === undefined || secret.length !== secretBytes) return undefined
  const { sign } = addon
  const kept = Uint8Array.from(secret)
  const signed: SignSecp256k1 = (digest) => {
    const signature = new Uint8Array(signatureBytes + 1)
    sign(kept, digest, signature)
    return signature
  }
  return sign(kept, new Uint8Array(digestBytes), new Uint8Array(signatureBytes + 1)) ? signed : undefined
}

/** A signer with this secret. Throws where it is none, and where the addon would sign otherwise than noble does. */
export function secp256k1SignerOf(secret: Uint8Array): SignSecp256k1 {
  const byFallback: SignSecp256k1 = (digest) => signSecp256k1ByFallback(secret, digest)
  const probe = new Uint8Array(digestBytes).fill(7)
  const expected = byFallback(probe)
  const signed = addonSigner(secret)
  if (signed === undefined) return byFallback
  if (Buffer.compare(signed(probe), expected) === 0) return signed
  throw new Error('native/secp256k1 does not sign as noble does')
}

/** The same key in its short form, 33 bytes: 2 or 3 says whether y is odd (SEC 1, 2.3.3). */
export function compressedKey(key: Uint8Array): Uint8Array {
  const short = key.slice(0, 33)
  short[0] = 2 + ((key[64] ?? 0) & 1)
  return short
}
