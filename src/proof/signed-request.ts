import { decodeBase64url } from '../format/base64url.js'
import { sha256 } from './digest.js'
import { nativeAddress, normalizedAddress } from './owner-address.js'
import { verifySignature } from './signature-verifiers.js'

/** Who has signed a request. */
export interface RequestSigner {
  readonly signatureType: number
  /** The address as the key's own network writes it. */
  readonly address: string
  /** base64url SHA-256 of the key. */
  readonly alias: string
  readonly nonce: string
}

/** Types whose wallets sign requests. */
const types: ReadonlySet<number> = new Set([1, 2, 3, 4])

const nonceShape = /^[\x20-\x7e]{1,200}$/
/** What items of type 4 sign: a deep hash in hexadecimal. The signature of an item, which anybody can read, signs no request. */
const itemMessageShape = /^[0-9a-f]{96}$/

/**
 * The signer of a request, by the headers x-nonce, x-signature, x-public-key and x-signature-type (absent: 1); undefined where
 * there are none, or where the signature does not hold. `bound`: text before the nonce in what was signed, for requests that are
 * one action only.
 *
 * Wallets differ in what they sign: some browser wallets the SHA-256 of the message in place of it (type 1), some keys of
 * Ed25519 the message in hexadecimal and others as it is (types 2 and 4). All of these say the same, so all are taken.
 */
export function requestSigner(
  header: (name: string) => string | undefined,
  bound = '',
): RequestSigner | undefined {
  const nonce = header('x-nonce')
  const signature = decodeBase64url(header('x-signature') ?? '')
  const owner = decodeBase64url(header('x-public-key') ?? '')
  const type = header('x-signature-type') ?? '1'
  const signatureType = /^\d{1,3}$/.test(type) ? Number(type) : 0
  if (nonce === undefined || !nonceShape.test(nonce) || signature === undefined || owner === undefined)
    return undefined
  if (!types.has(signatureType) || signature.length === 0) return undefined
  if (itemMessageShape.test(bound + nonce)) return undefined
  const message = Buffer.from(bound + nonce)
  if (!holds(signatureType, owner, message, signature)) return undefined
  return {
    signatureType,
    address: nativeAddress(signatureType, owner),
    alias: normalizedAddress(owner),
    nonce,
  }
}

function holds(type: number, owner: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  const by = (kind: number, bytes: Uint8Array): boolean =>
    verifySignature(kind, { owner, message: bytes, signature }) === true
  if (type === 1) return by(1, message) || by(1, sha256(message))
  if (type === 3) return by(3, message)
  // Type 2 is over the bytes as they are, type 4 over their hexadecimal text.
  return by(2, message) || by(4, message)
}
