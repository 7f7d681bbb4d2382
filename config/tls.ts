import { choice, flag, maybeText, maybeWhole } from './setting.js'

/** HTTPS of the gateway. */
export const tls = {
  port: maybeWhole({
    env: 'TLS_PORT',
    min: 0,
    max: 65_535,
    why: 'Where the gateway listens for HTTPS, beside PORT; 0: any free port. Unset: it does not.',
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
  unknownName: choice({
    env: 'TLS_UNKNOWN_NAME',
    default: 'default',
    of: ['default', 'refuse'],
    why: 'What a client gets that asks for a name which no certificate has: the default certificate, or no connection.',
  }),
  adminOnPublicListener: flag({
    env: 'ADMIN_ON_PUBLIC_LISTENER',
    default: false,
    why: 'Answers the admin routes and the metrics on TLS_PORT, too. Else PORT and the console alone have them.',
  }),
}

/** Settings of this table. */
export interface GivenTls {
  readonly port: number | undefined
  readonly certFile: string | undefined
  readonly keyFile: string | undefined
}

/** What contradicts itself. `taken`: ports of the other listeners, by their settings. */
export function tlsFaults(given: GivenTls, taken: Readonly<Record<string, number>>): string[] {
  const { port, certFile, keyFile } = given
  const wrong: string[] = []
  if ((certFile === undefined) !== (keyFile === undefined))
    wrong.push('TLS_CERT_FILE and TLS_KEY_FILE need each other')
  if (port !== undefined && certFile === undefined)
    wrong.push('TLS_PORT: needs a certificate, TLS_CERT_FILE and TLS_KEY_FILE')
  if (port === undefined && certFile !== undefined) wrong.push('TLS_CERT_FILE: needs TLS_PORT')
  for (const [name, at] of Object.entries(taken)) {
    if (port !== undefined && port !== 0 && at === port) wrong.push(`TLS_PORT and ${name} must differ`)
  }
  return wrong
}
