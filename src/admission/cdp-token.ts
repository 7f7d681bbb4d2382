import { createPrivateKey, type KeyObject, randomBytes } from 'node:crypto'
import type { Clock } from '../actor/clock.js'
import type { Authorizing } from './json-peer.js'

/** Lifetime of a token, which is made for one request only. */
const lifeSeconds = 120

interface SigningKey {
  readonly algorithm: 'ES256' | 'EdDSA'
  readonly key: KeyObject
}

/** PKCS#8 of an Ed25519 key, but for its 32 bytes (RFC 8410 section 7). */
const ed25519Lead = Buffer.from('302e020100300506032b657004220420', 'hex')

/**
 * Reads the provider's key: PEM of a P-256 key (line breaks may be written as `\n`), or base64 of an Ed25519 seed and public key
 * (64 bytes). Throws without the text of the key where it is neither.
 */
function readKey(secret: string): SigningKey {
  const text = secret.trim()
  try {
    if (text.startsWith('-----BEGIN')) {
      const key = createPrivateKey(text.replaceAll('\\n', '\n'))
      if (key.asymmetricKeyDetails?.namedCurve === 'prime256v1') return { algorithm: 'ES256', key }
    } else {
      const bytes = Buffer.from(text, 'base64')
      if (bytes.length === 64) {
        const der = Buffer.concat([ed25519Lead, bytes.subarray(0, 32)])
        return { algorithm: 'EdDSA', key: createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }) }
      }
    }
  } catch (error) {
    // OpenSSL's message is not passed on, because it may quote the key.
    if (!(error instanceof Error)) throw error
  }
  throw new Error('CDP_API_KEY_SECRET is neither a P-256 key in PEM nor an Ed25519 key of 64 bytes in base64')
}

/**
 * Signs a token (JWT, RFC 7519) for each request to the provider's facilitator. It names method, host and path, so
 * that it is valid for no other request. Throws where the key cannot be read.
 */
export function cdpAuthorizing(keyId: string, secret: string, clock: Clock): Authorizing {
  const { algorithm, key } = readKey(secret)
  return async (method, url) => {
    // Loaded here, because few operators use this provider.
    const { SignJWT } = await import('jose')
    const now = Math.floor(clock.now() / 1000)
    const claims = { uris: [`${method} ${url.host}${url.pathname}`] }
    const token = await new SignJWT(claims)
      .setProtectedHeader({ alg: algorithm, kid: keyId, typ: 'JWT', nonce: randomBytes(16).toString('hex') })
      .setSubject(keyId)
      .setIssuer('cdp')
      .setAudience(['cdp_service'])
      .setIssuedAt(now)
      .setNotBefore(now)
      .setExpirationTime(now + lifeSeconds)
      .sign(key)
    return `Bearer ${token}`
  }
}
