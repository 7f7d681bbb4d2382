import {
  createPrivateKey,
  type ED25519KeyPairOptions,
  generateKeyPair,
  generateKeyPairSync,
  type JsonWebKey,
  type KeyObject,
} from 'node:crypto'
import { promisify } from 'node:util'

/**
 * Node deadlocks if its garbage collector removes the job that made a key while this key is exported as a JSON Web Key: both take
 * one lock on one thread. So the job returns bytes, and the key is imported from them.
 */
const asBytes: ED25519KeyPairOptions<'der', 'der'> = {
  publicKeyEncoding: { type: 'spki', format: 'der' },
  privateKeyEncoding: { type: 'pkcs8', format: 'der' },
}

const inPool = promisify(generateKeyPair)

/** A new RSA key with the public exponent 65537 as a private JSON Web Key (RFC 7518, section 6.3). Made in libuv's pool. */
export async function newRsaKey(modulusBits: number): Promise<JsonWebKey> {
  const options = { modulusLength: modulusBits, publicExponent: 65_537, ...asBytes }
  const { privateKey } = await inPool('rsa', options)
  return createPrivateKey({ key: privateKey, type: 'pkcs8', format: 'der' }).export({ format: 'jwk' })
}

/** A new Ed25519 key; `publicKey` has the 32 bytes of RFC 8032. */
export function newEd25519Key(): { readonly privateKey: KeyObject; readonly publicKey: Buffer } {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519', asBytes)
  return {
    privateKey: createPrivateKey({ key: privateKey, type: 'pkcs8', format: 'der' }),
    // The structure of a public key ends with its bytes (RFC 8410, section 4).
    publicKey: publicKey.subarray(-32),
  }
}
