import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { ed25519SignerOf, type SignEd25519 } from '../../native/ed25519/ed25519.js'
import { decodeBase58, encodeBase58 } from '../format/base58.js'
import { encodeBase64url } from '../format/base64url.js'
import { readSmall } from '../store/folder.js'
import { keptSecret } from '../store/secret-file.js'

/** The key that signs answers, and the names a verifier knows it by. */
export interface SigningKey {
  /** Ed25519. Never leaves the thread that signs. */
  readonly privateKey: KeyObject
  /** Signs with it, on this thread. */
  readonly sign: SignEd25519
  /** 32 raw bytes. */
  readonly publicKey: Uint8Array
  /** `ed25519:` and the public key as 43 characters of base64url: all that a verifier needs. */
  readonly keyId: string
  /** Base58 of the public key: the signer's address in the registry. */
  readonly solanaAddress: string
}

export interface KeyPlaces {
  /** PKCS#8 PEM; made with mode 0600 where it is missing. Not used where an observer key is given. */
  readonly keyFile: string
  /** JSON array of 64 integers: seed and public key (the file form of Solana tools). */
  readonly observerKeypairPath?: string | undefined
  /** The same 64 bytes in base58. */
  readonly observerPrivateKey?: string | undefined
}

/** PKCS#8 of an Ed25519 key up to its 32-byte seed (RFC 8410 section 7). */
const seedFrame = Buffer.from('302e020100300506032b657004220420', 'hex')

/**
 * The signing key. Safe to call on several threads and processes at once: all get the same key. Throws an Error that names
 * the setting at fault, and never shows a secret: the start stops with it.
 */
export function loadSigningKey(places: KeyPlaces): SigningKey {
  const { observerKeypairPath, observerPrivateKey, keyFile } = places
  if (observerKeypairPath !== undefined && observerPrivateKey !== undefined) {
    throw new Error('OBSERVER_KEYPAIR_PATH and OBSERVER_PRIVATE_KEY exclude each other: set one')
  }
  if (observerKeypairPath !== undefined) {
    return keyOfSecret(readKeypairFile(observerKeypairPath), 'OBSERVER_KEYPAIR_PATH')
  }
  if (observerPrivateKey !== undefined) {
    return keyOfSecret(decodeBase58(observerPrivateKey.trim()), 'OBSERVER_PRIVATE_KEY')
  }
  return keyOf(readOrMakePem(keyFile))
}

function keyOf(privateKey: KeyObject): SigningKey {
  const publicKey = createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(-32)
  return {
    privateKey,
    sign: ed25519SignerOf(privateKey),
    publicKey,
    keyId: `ed25519:${encodeBase64url(publicKey)}`,
    solanaAddress: encodeBase58(publicKey),
  }
}

/**
 * The key of 64 bytes, seed then public key. The second half is checked, because a damaged file would give signatures
 * that do not verify under the public key.
 */
function keyOfSecret(secret: Uint8Array | undefined, setting: string): SigningKey {
  if (secret?.length !== 64) throw new Error(`${setting}: must hold a 64-byte keypair`)
  const der = Buffer.concat([seedFrame, secret.subarray(0, 32)])
  const key = keyOf(createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }))
  if (!Buffer.from(secret.subarray(32)).equals(key.publicKey)) {
    throw new Error(`${setting}: the public half does not belong to the secret half`)
  }
  return key
}

function readKeypairFile(path: string): Uint8Array | undefined {
  let parsed: unknown
  try {
    parsed = JSON.parse(readSmall(path))
  } catch (error) {
    // The parser's own message quotes the text, which is a secret; the system's code is not.
    const code = (error as NodeJS.ErrnoException).code
    throw new Error(
      `OBSERVER_KEYPAIR_PATH: ${code === undefined ? 'not JSON' : `cannot read ${path}: ${code}`}`,
    )
  }
  const isByte = (value: unknown): value is number =>
    typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 255
  return Array.isArray(parsed) && parsed.every(isByte) ? Uint8Array.from(parsed) : undefined
}

function readOrMakePem(path: string): KeyObject {
  let pem: string
  try {
    pem = keptSecret(
      path,
      () => generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }) as string,
    )
  } catch (error) {
    throw new Error(`HTTPSIG_KEY_FILE: cannot read or make ${path}: ${(error as NodeJS.ErrnoException).code}`)
  }
  let key: KeyObject | undefined
  try {
    key = createPrivateKey(pem)
  } catch {
    key = undefined
  }
  if (key?.asymmetricKeyType !== 'ed25519') {
    throw new Error(`HTTPSIG_KEY_FILE: ${path} does not hold an Ed25519 private key in PEM`)
  }
  return key
}
