import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** A certificate with its chain and key, as a listener takes them. */
export interface CertificatePair {
  /** DNS names that it is for, lower case; each may begin with `*.`, which stands for one label. */
  readonly names: readonly string[]
  /** The chain, PEM; the certificate itself first. */
  readonly cert: string
  /** PEM without a passphrase. */
  readonly key: string
}

/** The pair of two files. Throws, with a word for the operator, where one cannot be read or they do not belong together. */
export function readPair(certFile: string, keyFile: string): CertificatePair {
  const cert = read(certFile)
  const key = read(keyFile)
  const leaf = parsed(certFile, () => new X509Certificate(cert))
  const own = parsed(keyFile, () => createPrivateKey(key))
  if (!leaf.checkPrivateKey(own)) throw new Error(`${keyFile} is not the key of ${certFile}`)
  return { names: dnsNamesOf(leaf), cert, key }
}

/** DNS names of a certificate (subjectAltName, RFC 6125), lower case. */
function dnsNamesOf({ subjectAltName }: X509Certificate): string[] {
  const parts = (subjectAltName ?? '').split(', ')
  return parts.flatMap((part) => (part.startsWith('DNS:') ? [part.slice(4).toLowerCase()] : []))
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new Error(`cannot read ${path}: ${(error as Error).message}`, { cause: error })
  }
}

function parsed<Value>(path: string, parse: () => Value): Value {
  try {
    return parse()
  } catch (error) {
    throw new Error(`${path} is not what it must be: ${(error as Error).message}`, { cause: error })
  }
}
