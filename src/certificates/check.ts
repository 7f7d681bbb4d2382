import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import type { CertificatePair } from './pair.js'

/** A certificate with its key after `checkPair`. */
export interface CheckedPair extends CertificatePair {
  readonly issuer: string
  /** Milliseconds since 1970. */
  readonly notBeforeMs: number
  readonly notAfterMs: number
}

/** Why a certificate and its key cannot be used, in words for the operator. */
export interface WrongPair {
  readonly wrong: string
}

/** So long before its end operators hear of a certificate; a renewal has long been tried then. */
export const expiryNoticeMs = 14 * 86_400_000

/** Certificates in one chain. */
const chainMax = 10

/** Bits of an RSA key at least (CA/Browser Forum, Baseline Requirements 6.1.5). */
const rsaBitsMin = 2048

/**
 * Reads a chain (PEM, RFC 7468, the certificate of the host first) and its private key, and checks that they belong together: the
 * key is that of the first certificate, each certificate is signed by the next, and the kind of key is one that TLS clients take.
 * Dates are returned and not checked.
 */
export function checkPair(certificates: string, keyText: string): CheckedPair | WrongPair {
  const chain = readChain(certificates)
  if ('wrong' in chain) return chain
  const key = readKey(keyText)
  if ('wrong' in key) return key
  const [leaf] = chain.chain
  if (leaf === undefined) return { wrong: 'it holds no certificate' }
  if (!leaf.checkPrivateKey(key.key)) return { wrong: 'the key is not that of the certificate' }
  const wrong = wrongKind(key.key) ?? wrongChain(chain.chain)
  if (wrong !== undefined) return { wrong }
  if (leaf.subjectAltName === undefined) return { wrong: 'it names no host (subjectAltName)' }
  return {
    names: hostNames(leaf.subjectAltName),
    cert: chain.chain.map(String).join(''),
    key: key.key.export({ type: 'pkcs8', format: 'pem' }).toString(),
    issuer: issuerOf(leaf),
    notBeforeMs: Date.parse(leaf.validFrom),
    notAfterMs: Date.parse(leaf.validTo),
  }
}

/** Why a pair must not take the place of another one at this time; undefined where it may. */
export function wrongTime({ notBeforeMs, notAfterMs }: CheckedPair, nowMs: number): string | undefined {
  if (nowMs < notBeforeMs) return `it is valid only from ${new Date(notBeforeMs).toISOString()}`
  if (nowMs >= notAfterMs) return `it expired at ${new Date(notAfterMs).toISOString()}`
  return undefined
}

const block =
  /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----[\s\S]*?-----END (?:TRUSTED |X509 )?CERTIFICATE-----/g

function readChain(text: string): { chain: X509Certificate[] } | WrongPair {
  const blocks = text.match(block) ?? []
  if (blocks.length === 0) return { wrong: 'it holds no certificate in PEM form' }
  if (blocks.length > chainMax) return { wrong: `it holds more than ${chainMax} certificates` }
  try {
    return { chain: blocks.map((one) => new X509Certificate(one)) }
  } catch (error) {
    return { wrong: `a certificate cannot be read: ${(error as Error).message}` }
  }
}

const keyBlock = /-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----[\s\S]*?-----END (?:[A-Z]+ )*PRIVATE KEY-----/

function readKey(text: string): { key: KeyObject } | WrongPair {
  const [found] = keyBlock.exec(text) ?? []
  if (found === undefined) return { wrong: 'there is no private key in PEM form' }
  if (/ENCRYPTED/.test(found)) return { wrong: 'the key has a passphrase: give one without' }
  try {
    return { key: createPrivateKey(found) }
  } catch (error) {
    return { wrong: `the key cannot be read: ${(error as Error).message}` }
  }
}

function wrongKind(key: KeyObject): string | undefined {
  const { modulusLength = 0, namedCurve } = key.asymmetricKeyDetails ?? {}
  if (key.asymmetricKeyType === 'rsa')
    return modulusLength < rsaBitsMin
      ? `its RSA key has ${modulusLength} bits, at least ${rsaBitsMin} are needed`
      : undefined
  if (key.asymmetricKeyType === 'ec')
    return namedCurve === 'prime256v1' || namedCurve === 'secp384r1'
      ? undefined
      : `its key is of the curve ${namedCurve}; P-256 and P-384 can be used`
  return `its key is of the kind ${key.asymmetricKeyType}; RSA and EC (P-256, P-384) can be used`
}

function wrongChain(chain: readonly X509Certificate[]): string | undefined {
  for (const [at, issuer] of chain.slice(1).entries()) {
    const issued = chain[at]
    if (issued?.checkIssued(issuer) !== true || !issued.verify(issuer.publicKey))
      return `certificate ${at + 1} of the chain is not signed by certificate ${at + 2}`
  }
  return undefined
}

const hostName = /^(?:\*\.)?[a-z0-9_](?:[a-z0-9_-]*)(?:\.[a-z0-9_-]+)*$/

/** The DNS names of a `subjectAltName` as Node writes it: `DNS:a.example, DNS:*.a.example, IP Address:127.0.0.1`. */
function hostNames(text: string): string[] {
  return text
    .split(', ')
    .filter((one) => one.startsWith('DNS:'))
    .map((one) => one.slice('DNS:'.length).toLowerCase())
    .filter((one) => hostName.test(one))
}

/** Common name of who signed a certificate, else its organisation. */
function issuerOf({ issuer }: X509Certificate): string {
  const fields = new Map(issuer.split('\n').map((line) => line.split('=', 2) as [string, string]))
  return fields.get('CN') ?? fields.get('O') ?? 'unknown'
}
