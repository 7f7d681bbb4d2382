import { createHash } from 'node:crypto'
import { recoverSecp256k1 } from '../../native/secp256k1/secp256k1.js'
import { ethereumAddress } from '../proof/ethereum.js'
import { type TransferAuthorization, transferDigest } from '../proof/transfer-authorization.js'
import type { Usdc } from './usdc.js'

/** What the payer of a transfer of this token signs: 32 bytes. */
export function authorizationDigest(
  { name, version, chainId, address }: Usdc,
  given: TransferAuthorization,
): Uint8Array {
  return transferDigest({ name, version, chainId, verifyingContract: address }, given)
}

/** Bytes of r, s and v. */
export const plainSignatureBytes = 65

/**
 * Lower-case address of the key that made a 65-byte signature; undefined where it is none. Signatures with a high s
 * give undefined, because the token's contract refuses them.
 */
export function signerOf(digest: Uint8Array, signature: Uint8Array): string | undefined {
  const last = signature[64] ?? 0
  const recovery = last >= 27 ? last - 27 : last
  if (signature.length !== plainSignatureBytes || recovery > 1) return undefined
  const key = recoverSecp256k1(digest, signature.subarray(0, 64), recovery)
  return key === undefined ? undefined : `0x${Buffer.from(ethereumAddress(key)).toString('hex')}`
}

/**
 * What records keep of a signature (0x and hexadecimal digits): the first half of its SHA-256, base64url. By it the same payment
 * is known again, also where only the chain could verify the signature.
 */
export function signatureDigest(signature: string): string {
  const bytes = Buffer.from(signature.slice(2), 'hex')
  return createHash('sha256').update(bytes).digest().subarray(0, 16).toString('base64url')
}
