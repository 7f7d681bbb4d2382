import { randomBytes } from 'node:crypto'
import { checkPair } from './check.js'
import type { CertificatePair } from './pair.js'

const daySeconds = 86_400

/**
 * A certificate that no client trusts by itself, for DNS names that may begin with `*.`: on a devnet, and until the first one of
 * an ACME server is there. Valid for `days` from `nowMs` (milliseconds since 1970). The key is of P-256.
 */
export async function selfSigned(
  names: readonly string[],
  nowMs: number,
  days: number,
): Promise<CertificatePair> {
  // Loaded here, because most programs never need it.
  const x509 = await import('@peculiar/x509')
  x509.cryptoProvider.set(crypto)
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: `00${randomBytes(15).toString('hex')}`,
    name: `CN=${names[0] ?? 'sluice'}`,
    // An hour back, for clients whose clocks are behind.
    notBefore: new Date(nowMs - 3_600_000),
    notAfter: new Date(nowMs + days * daySeconds * 1000),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.SubjectAlternativeNameExtension(names.map((value) => ({ type: 'dns', value }))),
      new x509.BasicConstraintsExtension(false),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
    ],
  })
  const exported = await crypto.subtle.exportKey('pkcs8', keys.privateKey)
  const key = x509.PemConverter.encode(exported, 'PRIVATE KEY')
  const pair = checkPair(certificate.toString('pem'), key)
  if ('wrong' in pair) throw new Error(`a certificate made here cannot be used: ${pair.wrong}`)
  return pair
}
