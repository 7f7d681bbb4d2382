import { decodeBase64url, encodeBase64url } from '../format/base64url.js'
import { isSmallOrder } from '../proof/small-order.js'
import { joined, plainBytes } from './bytes.js'
import { ClientError } from './errors.js'

/**
 * Ed25519 by WebCrypto, and by a library that is loaded only where WebCrypto does not have it. Signatures are checked by the
 * platform's own function where it lends one: WebCrypto's way over another thread takes longer than the check.
 */

/** PKCS#8 of a key is this and the 32 bytes of the seed (RFC 8410). */
const pkcs8 = Uint8Array.from([48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, 112, 4, 34, 4, 32])

interface NativeVerifier {
  createPublicKey(key: { key: { kty: 'OKP'; crv: 'Ed25519'; x: string }; format: 'jwk' }): object
  verify(algorithm: null, message: Uint8Array, key: object, signature: Uint8Array): boolean
}

function nativeVerifier(): NativeVerifier | undefined {
  const { process } = globalThis as {
    process?: { getBuiltinModule?: (name: string) => NativeVerifier | undefined }
  }
  return process?.getBuiltinModule?.('node:crypto')
}

const native = nativeVerifier()

const library = async () => (await import('@noble/curves/ed25519.js')).ed25519

function isMissing(error: unknown): boolean {
  if (error instanceof Error) return true
  throw error
}

/** Public key and signing function of a 32-byte seed. */
export async function ed25519Pair(
  seed: Uint8Array,
): Promise<{ owner: Uint8Array; sign(message: Uint8Array): Promise<Uint8Array> }> {
  if (seed.length !== 32)
    throw new ClientError(
      'invalid-input',
      `a seed of ${seed.length} bytes`,
      'give the 32 bytes of an Ed25519 seed',
    )
  try {
    const whole = joined(pkcs8, seed)
    const key = await crypto.subtle.importKey('pkcs8', whole, 'Ed25519', true, ['sign'])
    const { x = '' } = await crypto.subtle.exportKey('jwk', key)
    const owner = decodeBase64url(x) ?? new Uint8Array(0)
    const sign = async (message: Uint8Array): Promise<Uint8Array> =>
      new Uint8Array(await crypto.subtle.sign('Ed25519', key, plainBytes(message)))
    return { owner, sign }
  } catch (error) {
    if (!isMissing(error)) throw error
    const ed25519 = await library()
    return { owner: ed25519.getPublicKey(seed), sign: async (message) => ed25519.sign(message, seed) }
  }
}

/** Whether a signature is by the key. False for keys that anybody can sign for: platforms differ in whether they accept them. */
export async function isEd25519Signed(
  publicKey: Uint8Array,
  message: Uint8Array,
  signature: Uint8Array,
): Promise<boolean> {
  if (publicKey.length !== 32 || isSmallOrder(publicKey)) return false
  try {
    if (native !== undefined) {
      // As a JWK: OpenSSL's decoder of DER takes 0.1 to 0.4 ms for each key.
      const jwk = { kty: 'OKP', crv: 'Ed25519', x: encodeBase64url(publicKey) } as const
      const key = native.createPublicKey({ key: jwk, format: 'jwk' })
      return native.verify(null, message, key, signature)
    }
    const key = await crypto.subtle.importKey('raw', plainBytes(publicKey), 'Ed25519', false, ['verify'])
    return await crypto.subtle.verify('Ed25519', key, plainBytes(signature), plainBytes(message))
  } catch (error) {
    if (!isMissing(error)) throw error
    const ed25519 = await library()
    try {
      return ed25519.verify(signature, message, publicKey)
    } catch (malformed) {
      return !isMissing(malformed)
    }
  }
}
