import { decodeBase64url, encodeBase64url } from '../format/base64url.js'
import { utf8 } from './bytes.js'
import { deepDigest } from './deep-digest.js'
import { ClientError } from './errors.js'
import { hash256 } from './hash.js'
import { isRsaSigned } from './rsa.js'

/** What an upload service signs when it has accepted an item. */
export interface UploadReceipt {
  readonly id: string
  /** Base64url SHA-256 of the owner's key. */
  readonly owner: string
  /** Credits charged, as a decimal text; `0` where it was free. */
  readonly winc: string
  /** Milliseconds since 1970. */
  readonly timestamp: number
  readonly version: string
  readonly deadlineHeight: number
  readonly dataCaches: readonly string[]
  readonly fastFinalityIndexes: readonly string[]
  /** The service's key: RSA modulus in base64url. */
  readonly public: string
  readonly signature: string
}

/** The address of the key that signed a receipt: what `/info` of the service has under `addresses.arweave`. */
export function receiptSigner(receipt: Pick<UploadReceipt, 'public'>): string | undefined {
  const key = decodeBase64url(receipt.public)
  return key === undefined ? undefined : encodeBase64url(hash256(key))
}

/**
 * Whether the receipt's own key signed it: RSA-PSS over the deep hash of `Bundlr`, version, id, deadline height and timestamp.
 * `receiptSigner` finds the owner of the key.
 */
export async function isReceiptSigned(receipt: UploadReceipt): Promise<boolean> {
  const { version, id, deadlineHeight, timestamp } = receipt
  const message = deepDigest(
    ['Bundlr', version, id, String(deadlineHeight), String(timestamp)].map((text) => utf8(text)),
  )
  const [key, signature] = [decodeBase64url(receipt.public), decodeBase64url(receipt.signature)]
  if (key === undefined || signature === undefined || key.length < 256) return false
  return isRsaSigned(key, message, signature)
}

/** Throws `untrue` where a receipt is not for the item or not by the service. `service`: its address, where it is known. */
export async function checkReceipt(
  receipt: UploadReceipt,
  itemId: string,
  service: string | undefined,
): Promise<void> {
  const problem = await problemOf(receipt, itemId, service)
  if (problem === undefined) return
  const advice = 'keep the receipt, check the item at a gateway, and use another upload service'
  throw new ClientError('untrue', `the receipt is false: ${problem}`, advice, { id: itemId })
}

async function problemOf(
  receipt: UploadReceipt,
  itemId: string,
  service: string | undefined,
): Promise<string | undefined> {
  if (receipt.id !== itemId) return `it is for ${receipt.id}`
  const signer = receiptSigner(receipt)
  if (service !== undefined && signer !== service) return `it is signed by ${signer}, not by ${service}`
  return (await isReceiptSigned(receipt)) ? undefined : 'its signature does not hold'
}
