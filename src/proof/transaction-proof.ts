import { joined, utf8 } from '../format/bytes.js'
import { idOfBytes } from '../format/id.js'
import { type Refusal, refuse } from '../format/refusal.js'
import type { Transaction } from '../format/transaction.js'
import { dataTree, inlineDataTree } from './data-root.js'
import { deepHash } from './deep-hash.js'
import { equalBytes, sha256 } from './digest.js'
import { recoverKey, recoverOwner, verifyRsa } from './signature-verifiers.js'
import { signedElements } from './signed-elements.js'

/** All of a transaction that its signature covers. */
export type UnsignedTransaction = Omit<Transaction, 'id' | 'signature'>

/**
 * The bytes that a transaction's owner signs. Format 2: a deep hash of its fields, 48 bytes, with the data root in the
 * place of the data; an owner that is recovered from the signature is not among them, and a redenominated amount has its
 * denomination in front. Format 1: owner, target, data, quantity, reward, anchor and tags simply one behind the other, so
 * that the whole data is needed.
 */
export function signatureData(tx: UnsignedTransaction): Uint8Array {
  const [quantity, reward] = [tx.quantity.toString(), tx.reward.toString()]
  if (tx.format === 1) {
    const tags = tx.tags.flatMap((tag) => [tag.name, tag.value])
    return joined(tx.owner, tx.target, tx.data, utf8(quantity), utf8(reward), tx.lastTx, ...tags)
  }
  return deepHash(
    signedElements({
      ...tx,
      quantity,
      reward,
      dataSize: tx.dataSize.toString(),
      tags: tx.tags.map((tag) => [tag.name, tag.value]),
    }),
  )
}

/**
 * The data root that a block's tree has for a transaction: the one it signed (format 2), or the one computed from its
 * data (format 1). Needs the data of a format-1 transaction.
 */
export function transactionDataRoot(tx: UnsignedTransaction): Uint8Array {
  return tx.format === 2 ? tx.dataRoot : inlineDataTree(tx.data).root
}

/**
 * The public key of a transaction's owner: the RSA modulus that it carries, or, where it carries none, the compressed
 * secp256k1 key (33 bytes) that made its signature over SHA-256 of the signed bytes. Empty where no key could have made it.
 * The address is SHA-256 of these bytes for both.
 */
export function ownerOf(tx: Transaction): Uint8Array {
  if (tx.owner.length > 0 || tx.format === 1) return tx.owner
  return recoverOwner(sha256(signatureData(tx)), tx.signature) ?? tx.owner
}

/**
 * The secp256k1 key (65 bytes, uncompressed) of a transaction that carries no owner; undefined where it carries one, or where no
 * key could have made its signature. The same key signs data items of type 3, by another address.
 */
export function recoveredKey(tx: Transaction): Uint8Array | undefined {
  if (tx.owner.length > 0 || tx.format === 1) return undefined
  return recoverKey(sha256(signatureData(tx)), tx.signature)
}

/**
 * Whether the id proves the transaction's fields, so that one node alone cannot send false ones. It does not where the owner is
 * recovered from the signature: with a changed field another key is recovered, under the same id. Nor in format 1, which signs
 * its fields one behind the other, without their lengths: the first 32 bytes of the data are as good a target, and the digits of
 * an amount as good an end of the data.
 */
export function isBoundById(tx: Pick<Transaction, 'format' | 'owner'>): boolean {
  return tx.format === 2 && tx.owner.length > 0
}

function forged(tx: Transaction, message: string): Refusal {
  return refuse('forged', 'upstream', `transaction ${tx.id}: ${message}`)
}

/**
 * Whether a transaction is what its id says: the id is SHA-256 of the signature, the owner signed it, and data that
 * comes with a format-2 transaction has its data root. Redenominated transactions of format 1 are refused: their
 * signature does not cover the data.
 *
 * Where the owner is recovered from the signature, and in format 1, the id does not prove the other fields: others make a valid
 * transaction under the same id (`isBoundById`).
 */
export function verifyTransaction(tx: Transaction): true | Refusal {
  if (idOfBytes(sha256(tx.signature)) !== tx.id) return forged(tx, 'the id is not the hash of the signature')
  if (tx.format === 1 && tx.denomination !== 0) return forged(tx, 'a signature that leaves out the data')
  if (tx.owner.length === 0 && ownerOf(tx).length === 0) return forged(tx, 'no key made the signature')
  if (tx.format === 1 && tx.data.length !== tx.dataSize) {
    return forged(tx, 'cannot be verified without its data')
  }
  // Without an owner the key was recovered from the signature, which is valid for that key by construction.
  const held =
    tx.owner.length === 0 ||
    verifyRsa({ owner: tx.owner, message: signatureData(tx), signature: tx.signature })
  if (held !== true) {
    return forged(tx, held === false ? 'the signature is not by the owner over this content' : held.message)
  }
  if (tx.format === 2 && tx.data.length > 0 && !equalBytes(dataTree(tx.data).root, tx.dataRoot)) {
    return forged(tx, 'the data does not have the data root')
  }
  return true
}
