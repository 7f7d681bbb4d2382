import { decodeBase64, encodeBase64 } from '../../format/base64url.js'
import { decodeHex } from '../../format/hex.js'
import { joined, plainBytes, utf8 } from '../bytes.js'
import { payloadDigestOf } from '../deep-digest.js'
import { ClientError } from '../errors.js'
import { itemFields, messageOf } from '../item-layout.js'
import { type ArweaveJwk, rsaSigningKey } from '../rsa.js'

/** How a drive's key comes from its wallet: 1 by a plain signature, 2 by the signature of a data item. */
export type DriveSignatureType = 1 | 2

type Key = Awaited<ReturnType<typeof crypto.subtle.importKey>>

/** The 16 bytes of a UUID. */
export function uuidBytes(uuid: string): Uint8Array {
  const bytes = decodeHex(uuid.replaceAll('-', ''))
  if (bytes?.length === 16) return bytes
  throw new ClientError('invalid-input', `${uuid} is no UUID`, 'give the id of a drive, folder or file')
}

/** The signature (512 bytes) that a drive's key is derived from. RSA without a salt: it is the same each time. */
export async function driveSignature(
  jwk: ArweaveJwk,
  driveId: string,
  type: DriveSignatureType,
): Promise<Uint8Array> {
  const { owner, sign } = await rsaSigningKey(jwk)
  const input = joined(utf8('drive'), uuidBytes(driveId))
  if (type === 1) return sign(input, 0)
  const fields = itemFields({ signatureType: 1, owner }, [{ name: 'Action', value: 'Drive-Signature-V2' }])
  return sign(messageOf(fields, await payloadDigestOf(input)), 0)
}

async function derived(secret: Uint8Array, info: Uint8Array): Promise<Uint8Array> {
  const key = await crypto.subtle.importKey('raw', plainBytes(secret), 'HKDF', false, ['deriveBits'])
  const how = { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(0), info: plainBytes(info) }
  return new Uint8Array(await crypto.subtle.deriveBits(how, key, 256))
}

/** The key of a drive and its folders. Clients in use encode the password to UTF-8 twice; so does this. */
export function driveKeyOf(signature: Uint8Array, password: string): Promise<Uint8Array> {
  const once = Array.from(utf8(password), (byte) => String.fromCharCode(byte)).join('')
  return derived(signature, utf8(once))
}

/** The key of a file's content and metadata, the same for all its versions. */
export function fileKeyOf(driveKey: Uint8Array, fileId: string): Promise<Uint8Array> {
  return derived(driveKey, uuidBytes(fileId))
}

/** Bytes as they are uploaded, and the tags that describe the encryption. */
export interface Sealed {
  readonly bytes: Uint8Array
  readonly tags: readonly { readonly name: string; readonly value: string }[]
}

/** Encrypts by AES-256-GCM under a fresh IV: ciphertext and tag of 16 bytes. */
export async function sealed(key: Uint8Array, plain: Uint8Array): Promise<Sealed> {
  const iv = crypto.getRandomValues(new Uint8Array(12))
  const secret = await crypto.subtle.importKey('raw', plainBytes(key), 'AES-GCM', false, ['encrypt'])
  const bytes = new Uint8Array(
    await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, secret, plainBytes(plain)),
  )
  const tags = [
    { name: 'Cipher', value: 'AES256-GCM' },
    { name: 'Cipher-IV', value: encodeBase64(iv) },
  ]
  return { bytes, tags }
}

/** Decrypts what is encrypted by its tags. Throws `wrong-key` where it does not open; an unknown cipher is never guessed. */
export async function opened(
  key: Uint8Array,
  bytes: Uint8Array,
  cipher: string | undefined,
  cipherIv: string | undefined,
): Promise<Uint8Array> {
  const iv = decodeBase64(cipherIv ?? '')
  if (iv === undefined || (iv.length !== 12 && iv.length !== 16))
    throw unreadable('the Cipher-IV is malformed')
  const importKey = (name: string): Promise<Key> =>
    crypto.subtle.importKey('raw', plainBytes(key), name, false, ['decrypt'])
  const whole = plainBytes(bytes)
  if (cipher === 'AES256-CTR') {
    const counter = iv.length === 16 ? iv : joined(iv, new Uint8Array(4))
    const how = { name: 'AES-CTR', counter, length: 128 }
    return new Uint8Array(await crypto.subtle.decrypt(how, await importKey('AES-CTR'), whole))
  }
  if (cipher !== undefined && cipher !== 'AES256-GCM') throw unreadable(`the cipher ${cipher} is unknown`)
  const secret = await importKey('AES-GCM')
  try {
    return new Uint8Array(await crypto.subtle.decrypt({ name: 'AES-GCM', iv }, secret, whole))
  } catch (error) {
    if (!(error instanceof Error)) throw error
    throw unreadable('it does not open with this key')
  }
}

/** What cannot be decrypted. */
export function unreadable(message: string): ClientError {
  return new ClientError('wrong-key', message, 'check the password, the wallet and the drive')
}
