import { constants, createPrivateKey, type JsonWebKey, type KeyObject, sign } from 'node:crypto'
import { secp256k1SignerOf } from '../../native/secp256k1/secp256k1.js'
import { nobleSecp256k1, signSecp256k1ByFallback } from '../../native/secp256k1/secp256k1-fallback.js'
import { encodeTags } from '../format/avro-tags.js'
import { idOfBytes } from '../format/id.js'
import { encodeItem } from '../format/item.js'
import type { Tag } from '../format/tag.js'
import type { Transaction } from '../format/transaction.js'
import { sha256 } from './digest.js'
import { ethereumMessage } from './ethereum.js'
import { itemMessage } from './item-verifier.js'
import { signatureData, type UnsignedTransaction } from './transaction-proof.js'

/** A key that can sign data items of one type. */
export interface ItemSigner {
  readonly signatureType: number
  readonly owner: Uint8Array
  /** Signs a deep hash (48 bytes). */
  sign(message: Uint8Array): Uint8Array
}

/** RSA-PSS over SHA-256 as the network signs, with a salt of 32 bytes. */
function signRsa(key: KeyObject, message: Uint8Array): Uint8Array {
  const padding = constants.RSA_PKCS1_PSS_PADDING
  return sign('sha256', message, { key, padding, saltLength: 32 })
}

/** Signs as type 1 with a private RSA JWK of 4096 bits. */
export function rsaSigner(jwk: JsonWebKey): ItemSigner {
  const key = createPrivateKey({ key: jwk, format: 'jwk' })
  const owner = Buffer.from(jwk.n ?? '', 'base64url')
  return { signatureType: 1, owner, sign: (message) => signRsa(key, message) }
}

/** PKCS#8 of an Ed25519 key is this and the 32 bytes of the seed (RFC 8410). */
const pkcs8 = Buffer.from('302e020100300506032b657004220420', 'hex')

/** The key of a 32-byte seed, and its public half. */
export function ed25519Key(seed: Uint8Array): { key: KeyObject; owner: Uint8Array } {
  if (seed.length !== 32) throw new RangeError(`a seed has 32 bytes, not ${seed.length}`)
  const key = createPrivateKey({ key: Buffer.concat([pkcs8, seed]), format: 'der', type: 'pkcs8' })
  return { key, owner: Buffer.from(key.export({ format: 'jwk' }).x ?? '', 'base64url') }
}

/** Signs as type 2 with a 32-byte Ed25519 seed. */
export function ed25519Signer(seed: Uint8Array): ItemSigner {
  const { key, owner } = ed25519Key(seed)
  return { signatureType: 2, owner, sign: (message) => sign(null, message, key) }
}

/** Signs as type 4 with a 32-byte Ed25519 seed: over the message's hex text, as Solana wallets do. */
export function solanaSigner(seed: Uint8Array): ItemSigner {
  const { key, owner } = ed25519Key(seed)
  return {
    signatureType: 4,
    owner,
    sign: (message) => sign(null, Buffer.from(Buffer.from(message).toString('hex')), key),
  }
}

/** Signs as type 3 with a 32-byte secp256k1 secret. */
export function ethereumSigner(secret: Uint8Array): ItemSigner {
  const sign = secp256k1SignerOf(secret)
  return {
    signatureType: 3,
    owner: nobleSecp256k1().getPublicKey(secret, false),
    sign: (message) => {
      const signature = sign(ethereumMessage(message))
      signature[64] = 27 + (signature[64] ?? 0)
      return signature
    },
  }
}

/** Makes a signed item: the whole item's bytes. */
export function signItem(
  signer: ItemSigner,
  parts: { readonly target?: Uint8Array; readonly anchor?: Uint8Array; readonly tags?: readonly Tag[] },
  payload: Uint8Array,
): Uint8Array {
  const { signatureType, owner } = signer
  const { tags = [], target = new Uint8Array(0), anchor = new Uint8Array(0) } = parts
  const rawTags = encodeTags(tags)
  const message = itemMessage({ signatureType, owner, target, anchor, rawTags }, payload)
  return encodeItem({ signatureType, signature: signer.sign(message), owner, target, anchor, tags }, payload)
}

/**
 * Signs a transaction of format 2 with a 32-byte secp256k1 secret. The owner stays empty: the key is recovered from
 * the signature.
 */
export function signTransactionEcdsa(
  tx: Omit<UnsignedTransaction, 'owner'>,
  secret: Uint8Array,
): Transaction {
  const unsigned = { ...tx, owner: new Uint8Array(0) }
  const signature = Buffer.from(signSecp256k1ByFallback(secret, sha256(signatureData(unsigned))))
  return { ...unsigned, signature, id: idOfBytes(sha256(signature)) }
}

/** Signs a transaction with an RSA JWK, whose modulus becomes the owner. */
export function signTransaction(tx: Omit<UnsignedTransaction, 'owner'>, jwk: JsonWebKey): Transaction {
  const key = createPrivateKey({ key: jwk, format: 'jwk' })
  const unsigned = { ...tx, owner: Buffer.from(jwk.n ?? '', 'base64url') }
  const signature = signRsa(key, signatureData(unsigned))
  return { ...unsigned, signature, id: idOfBytes(sha256(signature)) }
}
