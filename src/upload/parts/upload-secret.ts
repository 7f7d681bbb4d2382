import { createHmac, randomBytes } from 'node:crypto'
import type { Uploads } from '../records/uploads.js'

/**
 * One payment begins one upload, however often it is presented. The id of an upload permits to send its parts and to end it, and
 * the name of a payment is public on the chain. So the id must not be derivable from that name by others.
 */
export function uploadIdOf(secret: Uint8Array, payment: string): string {
  return createHmac('sha256', secret).update(`upload ${payment}`).digest('base64url')
}

const secretWord = 'upload-id-secret'

/** The secret of these tables, 32 bytes, which is made at the first start. */
export function uploadSecret(uploads: Pick<Uploads, 'environment' | 'value' | 'putValue'>): Uint8Array {
  const known = uploads.value(secretWord)
  if (known !== undefined) return Buffer.from(known, 'base64url')
  const made = randomBytes(32)
  uploads.environment.write(() => uploads.putValue(secretWord, made.toString('base64url')))
  return made
}
