import { type Ports, samePorts } from './ports.js'
import { choice, custom, flag, list, maybeText, maybeWhole, readUrl, secret, whole } from './setting.js'

/** Let's Encrypt (RFC 8555 section 7.1.1). */
const usualDirectory = 'https://acme-v02.api.letsencrypt.org/directory'

const dnsName = /^(?:\*\.)?[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+$/

/** HTTPS of the gateway, and of the services beside it. */
export const tls = {
  port: maybeWhole({
    env: 'TLS_PORT',
    min: 0,
    max: 65_535,
    why: 'Where the gateway listens for HTTPS, beside PORT; 0: any free port. Unset: it does not.',
  }),
  uploadPort: maybeWhole({
    env: 'UPLOAD_TLS_PORT',
    min: 0,
    max: 65_535,
    why: 'Where the upload service listens for HTTPS, beside UPLOAD_PORT, with the same certificates. Unset: it does not.',
  }),
  paymentPort: maybeWhole({
    env: 'PAYMENT_TLS_PORT',
    min: 0,
    max: 65_535,
    why: 'Where the payment service listens for HTTPS, beside PAYMENT_PORT, with the same certificates. Unset: it does not.',
  }),
  consolePort: maybeWhole({
    env: 'CONSOLE_TLS_PORT',
    min: 0,
    max: 65_535,
    why: 'Where the console is served by HTTPS, with the same certificates, for operators elsewhere. Unset: it is not.',
  }),
  listenAddress: maybeText({
    env: 'TLS_LISTEN_ADDRESS',
    allowed: 'an IPv4 or IPv6 address of this machine',
    shape: /^[0-9a-fA-F.:]+$/,
    why: 'Address of HTTP_REDIRECT_PORT and of all ports of HTTPS. Unset: that of PORT.',
  }),
  certFile: maybeText({
    env: 'TLS_CERT_FILE',
    allowed: 'a file',
    why: 'Certificate chain (PEM), the certificate of the gateway first; for names that no other certificate has.',
  }),
  keyFile: maybeText({
    env: 'TLS_KEY_FILE',
    allowed: 'a file',
    why: 'Private key (PEM) of TLS_CERT_FILE, ECDSA P-256 or RSA.',
  }),
  certsPath: maybeText({
    env: 'TLS_CERTS_PATH',
    allowed: 'a folder',
    why:
      'More certificates, chosen by the name that a client requests: NAME/fullchain.pem with privkey.pem, NAME.crt with ' +
      'NAME.key, or NAME.pem with both. Changed files are used within seconds.',
  }),
  selfSigned: flag({
    env: 'TLS_SELF_SIGNED',
    default: false,
    why: 'Makes a certificate for localhost and the names below it, which browsers warn of. On devnet only.',
  }),
  redirectPort: maybeWhole({
    env: 'HTTP_REDIRECT_PORT',
    min: 0,
    max: 65_535,
    why: 'Where every request is sent on to TLS_PORT (308), and where ACME servers find their challenges: 80 for the public.',
  }),
  acme: flag({
    env: 'TLS_ACME',
    default: false,
    why: 'Gets a certificate from an ACME server by itself, and renews it from a third of its lifetime on.',
  }),
  acmeEmail: maybeText({
    env: 'TLS_ACME_EMAIL',
    allowed: 'an e-mail address',
    shape: /^[^\s@,]+@[^\s@,]+$/,
    why: 'Address for the ACME account.',
  }),
  acmeDirectory: custom({
    env: 'TLS_ACME_DIRECTORY_URL',
    allowed: 'an https address',
    defaultText: usualDirectory,
    default: usualDirectory,
    read: readUrl,
    why: 'Directory of the ACME server. Its terms of service are agreed to.',
  }),
  acmeNames: list({
    env: 'TLS_ACME_NAMES',
    default: [],
    shape: dnsName,
    allowed: 'DNS names in lower case, comma between',
    why: 'Names of the certificate, at most 100. Unset: the hosts of ARNS_ROOT_HOST, and with TLS_DNS_HOOK all names below.',
  }),
  acmeKeyId: maybeText({
    env: 'TLS_ACME_EAB_KEY_ID',
    allowed: 'a key id',
    why: 'External account binding, where the ACME server wants one.',
  }),
  acmeHmacKey: secret(
    maybeText({
      env: 'TLS_ACME_EAB_HMAC_KEY',
      allowed: 'base64url',
      shape: /^[A-Za-z0-9_-]{16,}$/,
      why: 'Key of the external account binding.',
    }),
  ),
  dnsHook: maybeText({
    env: 'TLS_DNS_HOOK',
    allowed: 'a program',
    why:
      'Called with add or remove, a name and a value: sets the TXT record of a dns-01 challenge, without which no ' +
      'certificate for all names below a host is issued.',
  }),
  unknownName: choice({
    env: 'TLS_UNKNOWN_NAME',
    default: 'default',
    of: ['default', 'refuse'],
    why: 'What a client gets that asks for a name which no certificate has: the default certificate, or no connection.',
  }),
  hstsSeconds: whole({
    env: 'TLS_HSTS_SECONDS',
    default: 0,
    min: 0,
    max: 63_072_000,
    why: 'For so long browsers that were here use https only (Strict-Transport-Security). 0: no such line.',
  }),
  adminOnPublicListener: flag({
    env: 'ADMIN_ON_PUBLIC_LISTENER',
    default: false,
    why: 'Answers the admin routes and the metrics by HTTPS, too. Else the plain ports and the console alone have them.',
  }),
}

/** Settings of this table. */
export interface GivenTls {
  readonly port: number | undefined
  readonly uploadPort: number | undefined
  readonly paymentPort: number | undefined
  readonly consolePort: number | undefined
  readonly certFile: string | undefined
  readonly keyFile: string | undefined
  readonly certsPath: string | undefined
  readonly selfSigned: boolean
  readonly redirectPort: number | undefined
  readonly acme: boolean
  readonly acmeNames: readonly string[]
  readonly acmeKeyId: string | undefined
  readonly acmeHmacKey: string | undefined
  readonly dnsHook: string | undefined
}

export interface TlsSurroundings {
  /** Ports of the other listeners, by their settings. */
  readonly taken: Ports
  /** What listens at all. */
  readonly running: ReadonlySet<'gateway' | 'upload' | 'payment' | 'console'>
  readonly isDevnet: boolean
  readonly rootHosts: readonly string[]
}

type TlsPorts = Pick<GivenTls, 'port' | 'uploadPort' | 'paymentPort' | 'consolePort'>

/** Whether anything listens for HTTPS. */
export function hasTls({ port, uploadPort, paymentPort, consolePort }: TlsPorts): boolean {
  return [port, uploadPort, paymentPort, consolePort].some((one) => one !== undefined)
}

/** The names that a certificate is requested for. */
export function acmeNamesOf(
  { acmeNames, dnsHook }: Pick<GivenTls, 'acmeNames' | 'dnsHook'>,
  rootHosts: readonly string[],
): readonly string[] {
  if (acmeNames.length > 0) return acmeNames
  const hosts = rootHosts.map((host) => host.toLowerCase())
  return dnsHook === undefined ? hosts : hosts.flatMap((host) => [host, `*.${host}`])
}

/** What contradicts itself. */
export function tlsFaults(given: GivenTls, surroundings: TlsSurroundings): string[] {
  const { port, certFile, keyFile, certsPath, selfSigned, acme, redirectPort } = given
  const { taken, isDevnet, running } = surroundings
  const wrong: string[] = []
  if ((certFile === undefined) !== (keyFile === undefined))
    wrong.push('TLS_CERT_FILE and TLS_KEY_FILE need each other')
  if (selfSigned && !isDevnet) wrong.push('TLS_SELF_SIGNED: only on devnet')
  const sources = {
    TLS_CERT_FILE: certFile,
    TLS_CERTS_PATH: certsPath,
    TLS_ACME: acme,
    TLS_SELF_SIGNED: selfSigned,
  }
  const named = Object.entries(sources).flatMap(([name, one]) =>
    one === undefined || one === false ? [] : [name],
  )
  const ports = portsOf(given)
  const [portName] = Object.entries(ports).find(([, { at }]) => at !== undefined) ?? []
  if (portName !== undefined && named.length === 0)
    wrong.push(`${portName}: needs a certificate, by one of ${Object.keys(sources).join(', ')}`)
  if (portName === undefined) wrong.push(...named.map((name) => `${name}: needs TLS_PORT`))
  if (port === undefined && redirectPort !== undefined) wrong.push('HTTP_REDIRECT_PORT: needs TLS_PORT')
  for (const [name, { at, of }] of Object.entries(ports))
    if (at !== undefined && !running.has(of)) wrong.push(`${name}: there is no ${of} in this program`)
  if (acme) wrong.push(...acmeFaults(given, surroundings))
  const own = Object.fromEntries(Object.entries(ports).map(([name, { at }]) => [name, at]))
  wrong.push(...samePorts({ ...own, HTTP_REDIRECT_PORT: redirectPort }, taken))
  return wrong
}

/** Ports of HTTPS by their settings, and what listens there. */
function portsOf({ port, uploadPort, paymentPort, consolePort }: TlsPorts) {
  return {
    TLS_PORT: { at: port, of: 'gateway' },
    UPLOAD_TLS_PORT: { at: uploadPort, of: 'upload' },
    PAYMENT_TLS_PORT: { at: paymentPort, of: 'payment' },
    CONSOLE_TLS_PORT: { at: consolePort, of: 'console' },
  } as const
}

function acmeFaults(given: GivenTls, { rootHosts }: TlsSurroundings): string[] {
  const { acmeKeyId, acmeHmacKey, dnsHook, redirectPort } = given
  const wrong: string[] = []
  const names = acmeNamesOf(given, rootHosts)
  if (names.length === 0) wrong.push('TLS_ACME: needs ARNS_ROOT_HOST or TLS_ACME_NAMES')
  if (names.length > 100) wrong.push('TLS_ACME_NAMES: more than 100 names')
  const bad = names.filter((name) => !dnsName.test(name))
  if (bad.length > 0) wrong.push(`TLS_ACME: no ACME server gives a certificate for ${bad.join(' ')}`)
  const wild = names.filter((name) => name.startsWith('*.'))
  if (wild.length > 0 && dnsHook === undefined)
    wrong.push(`TLS_ACME_NAMES: ${wild.join(' ')} needs TLS_DNS_HOOK`)
  if (dnsHook === undefined && redirectPort === undefined)
    wrong.push('TLS_ACME: needs HTTP_REDIRECT_PORT, reached by the public at port 80, or TLS_DNS_HOOK')
  if ((acmeKeyId === undefined) !== (acmeHmacKey === undefined))
    wrong.push('TLS_ACME_EAB_KEY_ID and TLS_ACME_EAB_HMAC_KEY need each other')
  return wrong
}
