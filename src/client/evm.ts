import { hmac } from '@noble/hashes/hmac.js'
import { sha256 } from '@noble/hashes/sha2.js'
import * as secp256k1 from '@noble/secp256k1'
import { addonSigner } from '#addon-signer'
import { joined, sameBytes, utf8 } from '../format/bytes.js'
import { decodeHex } from '../format/hex.js'
import { checksumAddress, ethereumAddress, keccak, typedBundlrDigest } from '../proof/ethereum.js'

export { ethereumMessage } from '../proof/ethereum.js'
export { transferDigest, transferFields } from '../proof/transfer-authorization.js'

/** Ethereum's part of the client, loaded only where a key or an item of that network is at hand. */

// What the library signs by; of its own it has only WebCrypto's, which is not at once.
secp256k1.hashes.sha256 = sha256
secp256k1.hashes.hmacSha256 = (key, message) => hmac(sha256, key, message)

/** 65 bytes r, s, v over 32. */
export function signDigest(digest: Uint8Array, secret: Uint8Array): Uint8Array {
  const signature = secp256k1.sign(digest, secret, { prehash: false, format: 'recovered' })
  return joined(signature.subarray(1), Uint8Array.of(27 + (signature[0] ?? 0)))
}

/**
 * Signs digests, r, s, v: 65 bytes each. By an addon where there is one, which is of constant time and six times as fast; throws
 * where it would sign otherwise than the library does.
 */
export function digestSigner(secret: Uint8Array): (digest: Uint8Array) => Uint8Array {
  // Of a Buffer, `slice` is the same memory, which whoever gave it may wipe.
  const kept = Uint8Array.from(secret)
  const byAddon = addonSigner(kept)
  if (byAddon === undefined) return (digest) => signDigest(digest, kept)
  const signed = (digest: Uint8Array): Uint8Array => {
    const signature = byAddon(digest)
    signature[64] = 27 + (signature[64] ?? 0)
    return signature
  }
  const probe = keccak(utf8('a key signs this once, to be compared'))
  if (sameBytes(signed(probe), signDigest(probe, kept))) return signed
  throw new Error('the addon for secp256k1 does not sign as noble does')
}

/** The uncompressed key (65 bytes) of a secret. */
export function evmPublicKey(secret: Uint8Array): Uint8Array {
  return secp256k1.getPublicKey(secret, false)
}

/** The key whose signature r, s, v this is. Throws where it is none. */
export function recoverKey(digest: Uint8Array, signature: Uint8Array): Uint8Array {
  const v = signature[64] ?? 0
  const recovered = joined(Uint8Array.of(v >= 27 ? v - 27 : v), signature.subarray(0, 64))
  const point = secp256k1.recoverPublicKey(recovered, digest, { prehash: false })
  return secp256k1.Point.fromBytes(point).toBytes(false)
}

/** Whether r and s are by this key; a high s, a second form of the same signature, is not. */
export function isSignedBy(key: Uint8Array, digest: Uint8Array, signature: Uint8Array): boolean {
  try {
    return secp256k1.verify(signature.subarray(0, 64), digest, key, { prehash: false, lowS: true })
  } catch (error) {
    if (error instanceof Error) return false
    throw error
  }
}

/** The address of an uncompressed key in mixed case (EIP-55). */
export function evmAddress(key: Uint8Array): string {
  return checksumAddress(ethereumAddress(key))
}

/** Type 7: whether the address spelled by the owner signed the message under the domain `Bundlr` 1. */
export function isTypedBundlr(owner: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  const address = decodeHex(new TextDecoder().decode(owner)) ?? new Uint8Array(0)
  try {
    return sameBytes(ethereumAddress(recoverKey(typedBundlrDigest(message, address), signature)), address)
  } catch (error) {
    if (error instanceof Error) return false
    throw error
  }
}
