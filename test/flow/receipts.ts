import { constants, createPublicKey, verify } from 'node:crypto'
import { deepHash } from '../../src/proof/deep-hash.js'

/** What the upload service answers to an item that it has taken. */
export interface Receipt {
  readonly id: string
  readonly version: string
  readonly deadlineHeight: number
  readonly timestamp: number
  readonly winc: string
  readonly public: string
  readonly signature: string
  readonly owner: string
  readonly dataCaches: readonly string[]
}

/** Whether the service has signed it, as a client verifies it: with any length of salt. */
export function isSigned({
  id,
  version,
  deadlineHeight,
  timestamp,
  public: n,
  signature,
}: Omit<Receipt, 'owner' | 'winc' | 'dataCaches'>): boolean {
  const words = ['Bundlr', version, id, String(deadlineHeight), String(timestamp)]
  const key = createPublicKey({ key: { kty: 'RSA', n, e: 'AQAB' }, format: 'jwk' })
  const padding = constants.RSA_PKCS1_PSS_PADDING
  const options = { key, padding, saltLength: constants.RSA_PSS_SALTLEN_AUTO }
  const message = deepHash(words.map((word) => Buffer.from(word)))
  return verify('sha256', message, options, Buffer.from(signature, 'base64url'))
}
