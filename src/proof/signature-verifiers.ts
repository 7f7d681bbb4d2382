import { constants, createPublicKey, type KeyObject, verify } from 'node:crypto'
import { verifyEd25519 } from '../../native/ed25519/ed25519.js'
import {
  compressedKey,
  isSecp256k1Key,
  recoverSecp256k1,
  verifySecp256k1,
} from '../../native/secp256k1/secp256k1.js'
import { signatureTypes } from '../format/item.js'
import { type Refusal, refuse } from '../format/refusal.js'
import { ethereumAddress, ethereumMessage, typedBundlrDigest } from './ethereum.js'
import { isSmallOrder } from './small-order.js'
import { aptosMessage, solanaMessage } from './wrapped-message.js'

/** What is to be checked: who signed, the deep hash that was signed (48 bytes), and the signature. */
export interface Signed {
  readonly owner: Uint8Array
  readonly message: Uint8Array
  readonly signature: Uint8Array
}

function malformed(message: string): Refusal {
  return refuse('malformed', 'client', `signature: ${message}`)
}

/** The public exponent of every key of the network. */
const exponent = 'AQAB'

/**
 * Keys by their modulus: making one takes as long as a verification. Some 2 KiB each; the cache is cleared when it has so many.
 */
const keysMax = 1000
const keys = new Map<string, KeyObject>()

function rsaKey(modulus: Uint8Array): KeyObject | Refusal {
  const n = Buffer.from(modulus).toString('base64url')
  const known = keys.get(n)
  if (known !== undefined) return known
  try {
    const key = createPublicKey({ key: { kty: 'RSA', n, e: exponent }, format: 'jwk' })
    if (keys.size >= keysMax) keys.clear()
    keys.set(n, key)
    return key
  } catch (error) {
    if (error instanceof Error) return malformed(`the owner is not a key (${error.message})`)
    throw error
  }
}

/** RSA-PSS over SHA-256 with any salt length; the owner is the modulus. */
export function verifyRsa({ owner, message, signature }: Signed): boolean | Refusal {
  const key = rsaKey(owner)
  if ('refused' in key) return key
  const options = {
    key,
    padding: constants.RSA_PKCS1_PSS_PADDING,
    saltLength: constants.RSA_PSS_SALTLEN_AUTO,
  }
  try {
    return verify('sha256', message, options, signature)
  } catch (error) {
    // A modulus that no real key has (even, or very small) is parsed, but the verification throws.
    if (error instanceof Error) return malformed(`the owner is not a usable key (${error.message})`)
    throw error
  }
}

function verifyEdwards(owner: Uint8Array, bytes: Uint8Array, signature: Uint8Array): boolean | Refusal {
  if (isSmallOrder(owner)) return malformed('the owner is a key that anybody can sign for')
  return verifyEd25519(owner, bytes, signature)
}

/**
 * Ethereum's personal message; the recovery byte is ignored, because the owner is the full key: where another one would make
 * another id of the same content, see `isOnlyForm`. Signatures with a high s are refused: s and its negative would both be valid.
 */
function verifyEthereum({ owner, message, signature }: Signed): boolean | Refusal {
  if (owner[0] !== 4) return malformed('the owner is not an uncompressed point')
  if (!isSecp256k1Key(owner)) return malformed('the owner is not a point of the curve')
  return verifySecp256k1(owner, ethereumMessage(message), signature.subarray(0, 64))
}

/**
 * The key (65 bytes, uncompressed) that signed 32 bytes: r, s and the recovery number 0 to 3, 65 bytes in all. Undefined where it
 * is no such signature, or has a high s: then a second signature would be valid too.
 */
export function recoverKey(digest: Uint8Array, signature: Uint8Array): Uint8Array | undefined {
  const recovery = signature[64]
  if (signature.length !== 65 || recovery === undefined) return undefined
  return recoverSecp256k1(digest, signature.subarray(0, 64), recovery)
}

/** The same key in its compressed form (33 bytes). */
export function recoverOwner(digest: Uint8Array, signature: Uint8Array): Uint8Array | undefined {
  const key = recoverKey(digest, signature)
  return key === undefined ? undefined : compressedKey(key)
}

function verifySolana({ owner, message, signature }: Signed): boolean | Refusal {
  return verifyEdwards(owner, solanaMessage(message), signature)
}

function verifyInjectedAptos({ owner, message, signature }: Signed): boolean | Refusal {
  return verifyEdwards(owner, aptosMessage(message), signature)
}

const aptosKeys = 32

/**
 * Up to 32 Ed25519 keys of which a threshold signs. The last four bytes of the signature are a bitmap, most
 * significant bit first: bit i says that slot i holds a signature by key i. All signatures that are present must be
 * valid, and their number must reach the threshold, which is at least 1. Some verifiers in use do not check this, and
 * accept an item without any signature.
 */
function verifyMultiAptos({ owner, message, signature }: Signed): boolean | Refusal {
  const threshold = owner[aptosKeys * 32] ?? 0
  if (threshold < 1 || threshold > aptosKeys)
    return malformed(`the threshold ${threshold} is not from 1 to ${aptosKeys}`)
  let signers = 0
  for (let i = 0; i < aptosKeys; i++) {
    const bits = signature[aptosKeys * 64 + (i >> 3)] ?? 0
    if ((bits & (0x80 >> (i & 7))) === 0) continue
    signers++
    const key = owner.subarray(i * 32, i * 32 + 32)
    const held = verifyEdwards(key, message, signature.subarray(i * 64, i * 64 + 64))
    if (held !== true) return held
  }
  return signers >= threshold
}

/** EIP-712: the address recovered from the signature is the one in the owner field. */
function verifyTypedEthereum({ owner, message, signature }: Signed): boolean | Refusal {
  const address = Buffer.from(owner).toString('latin1').toLowerCase()
  if (!/^0x[0-9a-f]{40}$/.test(address)) return malformed('the owner is not an address')
  const v = signature[64] ?? 0
  const recovery = v >= 27 ? v - 27 : v
  if (recovery > 1) return malformed(`the recovery byte ${v} is unknown`)
  const digest = typedBundlrDigest(message, Buffer.from(address.slice(2), 'hex'))
  const key = recoverSecp256k1(digest, signature.subarray(0, 64), recovery)
  if (key === undefined) return false
  return `0x${Buffer.from(ethereumAddress(key)).toString('hex')}` === address
}

type Verifier = (signed: Signed) => boolean | Refusal

const verifiers: ReadonlyMap<number, Verifier> = new Map<number, Verifier>([
  [1, verifyRsa],
  [2, ({ owner, message, signature }) => verifyEdwards(owner, message, signature)],
  [3, verifyEthereum],
  [4, verifySolana],
  [5, verifyInjectedAptos],
  [6, verifyMultiAptos],
  [7, verifyTypedEthereum],
])

/**
 * Whether the signature is valid under a signature type of data items (format/item.ts). False: a well-formed
 * signature that is not by this owner over this message. A refusal (malformed): an unknown type, wrong lengths, or an
 * owner that is no key.
 */
export function verifySignature(type: number, signed: Signed): boolean | Refusal {
  const shape = signatureTypes.get(type)
  const verifier = verifiers.get(type)
  if (shape === undefined || verifier === undefined) return malformed(`signature type ${type} is unknown`)
  if (signed.owner.length !== shape.ownerSize || signed.signature.length !== shape.signatureSize) {
    return malformed(
      `type ${type} has ${shape.signatureSize} bytes of signature, ${shape.ownerSize} of owner`,
    )
  }
  return verifier(signed)
}
