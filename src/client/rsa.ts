import { decodeBase64url, encodeBase64url } from '../format/base64url.js'
import { type Bytes, plainBytes } from './bytes.js'
import { ClientError } from './errors.js'

/** The private key of an Arweave wallet: an RSA JWK. */
export interface ArweaveJwk {
  readonly kty: string
  readonly n: string
  readonly e: string
  readonly d?: string
  readonly p?: string
  readonly q?: string
  readonly dp?: string
  readonly dq?: string
  readonly qi?: string
}

type Key = Awaited<ReturnType<typeof crypto.subtle.importKey>>
const algorithm = { name: 'RSA-PSS', hash: 'SHA-256' }

/** A key that signs by RSA-PSS over SHA-256; its salt is 32 bytes by default. */
export async function rsaSigningKey(
  jwk: ArweaveJwk,
): Promise<{ owner: Bytes; sign(message: Uint8Array, saltBytes?: number): Promise<Uint8Array> }> {
  const owner = typeof jwk.n === 'string' ? decodeBase64url(jwk.n) : undefined
  if (jwk.kty !== 'RSA' || owner?.length !== 512 || jwk.d === undefined)
    throw new ClientError(
      'invalid-input',
      'no private RSA key of 4096 bits',
      'give the JWK of an Arweave wallet',
    )
  const { kty, n, e, d, p, q, dp, dq, qi } = jwk as Required<ArweaveJwk>
  const key = await crypto.subtle.importKey('jwk', { kty, n, e, d, p, q, dp, dq, qi }, algorithm, false, [
    'sign',
  ])
  return {
    owner,
    async sign(message, saltLength = 32) {
      return new Uint8Array(
        await crypto.subtle.sign({ name: 'RSA-PSS', saltLength }, key, plainBytes(message)),
      )
    },
  }
}

/** Salt lengths of wallets in use: 32, none, and as many as fit. WebCrypto needs the length. */
const salts = (modulusBytes: number): readonly number[] => [32, 0, modulusBytes - 34]

/** Whether a signature is by the RSA key with this modulus, with any of the salts in use. */
export async function isRsaSigned(
  modulus: Uint8Array,
  message: Uint8Array,
  signature: Uint8Array,
): Promise<boolean> {
  let key: Key
  try {
    const jwk = { kty: 'RSA', n: encodeBase64url(modulus), e: 'AQAB' }
    key = await crypto.subtle.importKey('jwk', jwk, algorithm, false, ['verify'])
  } catch (error) {
    if (error instanceof Error) return false
    throw error
  }
  for (const saltLength of salts(modulus.length)) {
    const how = { name: 'RSA-PSS', saltLength }
    if (await crypto.subtle.verify(how, key, plainBytes(signature), plainBytes(message))) return true
  }
  return false
}
