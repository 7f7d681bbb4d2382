import { ripemd160 } from '@noble/hashes/legacy.js'
import { encodeBase58 } from '../format/base58.js'
import { encodeBase64url } from '../format/base64url.js'
import { encodeBech32 } from '../format/bech32.js'
import { sha256 } from './digest.js'
import { checksumAddress, ethereumAddress } from './ethereum.js'

/** The address of a key in receipts, queries and block lists, for every type alike: base64url SHA-256 of the owner. */
export function normalizedAddress(owner: Uint8Array): string {
  return encodeBase64url(sha256(owner))
}

/**
 * The address that a key's own network uses for it, and under which it keeps accounts: base58 for types 2 and 4,
 * EIP-55 for 3, and for 7 too, whose owner field is the address already; the normalized address for all others.
 */
export function nativeAddress(signatureType: number, owner: Uint8Array): string {
  if (signatureType === 2 || signatureType === 4) return encodeBase58(owner)
  if (signatureType === 3) return checksumAddress(ethereumAddress(owner))
  if (signatureType === 7) {
    return checksumAddress(Buffer.from(Buffer.from(owner).toString('latin1').slice(2), 'hex'))
  }
  return normalizedAddress(owner)
}

/**
 * The `kyve1...` address of a type-3 key (65 bytes, uncompressed): bech32 of RIPEMD-160 of SHA-256 of the compressed
 * key. Used where the sender names that network; the item's own type says Ethereum.
 */
export function kyveAddress(owner: Uint8Array): string {
  const parity = 2 + ((owner[64] ?? 0) & 1)
  const compressed = Buffer.concat([Uint8Array.of(parity), owner.subarray(1, 33)])
  return encodeBech32('kyve', ripemd160(sha256(compressed)))
}
