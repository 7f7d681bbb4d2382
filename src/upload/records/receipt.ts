import { encodeBase64url } from '../../format/base64url.js'
import type { Id } from '../../format/id.js'
import { deepHash } from '../../proof/deep-hash.js'

export const receiptVersion = '0.2.0'

/** What of a receipt is signed. */
export interface SignedReceipt {
  readonly id: Id
  /** Milliseconds since 1970. */
  readonly timestamp: number
  /** The item is permanent by this height. */
  readonly deadlineHeight: number
}

/** The 48 bytes that a receipt's signature is about. */
export function receiptMessage({ id, timestamp, deadlineHeight }: SignedReceipt): Uint8Array {
  const words = ['Bundlr', receiptVersion, id, String(deadlineHeight), String(timestamp)]
  return deepHash(words.map((word) => Buffer.from(word)))
}

/** A receipt as clients get it. */
export interface Receipt extends SignedReceipt {
  readonly version: string
  /** What was charged, decimal; '0' where it was free. */
  readonly winc: string
  readonly dataCaches: readonly string[]
  readonly fastFinalityIndexes: readonly string[]
  /** Modulus of the service's key. */
  readonly public: string
  readonly signature: string
  /** base64url SHA-256 of the owner's key. */
  readonly owner: string
}

/** Who signs, and who serves what was taken. */
export interface ReceiptTerms {
  /** RSA modulus, base64url. */
  readonly public: string
  readonly dataCaches: readonly string[]
  readonly fastFinalityIndexes: readonly string[]
}

/** The receipt of an item, as its client gets it. */
export function receiptOf(
  signed: SignedReceipt & { readonly winc: string; readonly owner: string },
  signature: Uint8Array,
  terms: ReceiptTerms,
): Receipt {
  const { id, timestamp, deadlineHeight, winc, owner } = signed
  const { dataCaches, fastFinalityIndexes } = terms
  return {
    id,
    timestamp,
    winc,
    version: receiptVersion,
    deadlineHeight,
    dataCaches,
    fastFinalityIndexes,
    public: terms.public,
    signature: encodeBase64url(signature),
    owner,
  }
}
