import { randomBytes } from 'node:crypto'
import type { Config } from '../../config/read.js'
import { systemClock } from '../actor/clock.js'
import type { Part } from '../actor/supervise.js'
import { tlsPortsShared } from '../http/listen.js'
import { TicketKeys } from '../http/ticket-keys.js'
import type { EdgeGiven } from '../threads/edge-given.js'
import { type CertificatesGiven, challengesFolder, ProgramCertificates } from './certificates.js'
import { found, urlOf } from './ports.js'

/** The HTTPS listener of the gateway, and the one that redirects to it; nothing where the operator wants none. */
export interface TlsPlace {
  /** To be up before the edge threads. */
  readonly parts: Part[]
  /** To be up after the edge threads. */
  readonly watches: Part[]
  /** What the edge thread of this number (from 0) serves. */
  place(index: number): Pick<EdgeGiven, 'tls' | 'redirect'>
  urls(): Readonly<Record<string, string>>
  /** Reads the certificates again. */
  reload(): void
}

/** `gatewayHost`: where the gateway listens. */
export function tlsOf(config: Config, gatewayHost: string, given: CertificatesGiven): TlsPlace {
  const { port: wanted, redirectPort, unknownName } = config.tls
  if (wanted === undefined)
    return { parts: [], watches: [], place: () => ({}), urls: () => ({}), reload: () => undefined }
  const host = config.tls.listenAddress ?? gatewayHost
  const ports = { tls: wanted, redirect: redirectPort }
  const certificates = new ProgramCertificates(config, given)
  const tickets = new TicketKeys(TicketKeys.memory(), randomBytes)
  // Shared by all threads, so that they answer one another's requests only where these came over TLS, too.
  const group = new SharedArrayBuffer(8)
  const challenges = challengesFolder(config)
  const redirect = (): Pick<EdgeGiven, 'redirect'> =>
    ports.redirect === undefined
      ? {}
      : { redirect: { host, port: ports.redirect, httpsPort: ports.tls, challenges } }
  return {
    parts: [
      certificates.part(),
      rotating(tickets),
      found(host, wanted, 'TLS_PORT', (free) => {
        ports.tls = free
      }),
      ...(redirectPort === undefined
        ? []
        : [
            found(host, redirectPort, 'HTTP_REDIRECT_PORT', (free) => {
              ports.redirect = free
            }),
          ]),
    ],
    watches: certificates.renewal(),
    place: (index) => ({
      ...(index > 0 && !tlsPortsShared
        ? {}
        : {
            tls: {
              host,
              port: ports.tls,
              pairs: certificates.pairs,
              ticketKeys: tickets.bytes,
              unknownName,
              lines: strictTransport(config.tls.hstsSeconds),
              group,
            },
          }),
      ...redirect(),
    }),
    urls: () => ({
      https: urlOf(host, ports.tls, 'https'),
      ...(ports.redirect === undefined ? {} : { redirect: urlOf(host, ports.redirect) }),
    }),
    reload: () => certificates.reload(),
  }
}

function rotating(tickets: TicketKeys): Part {
  return {
    name: 'ticket keys',
    start: async () => {
      const rotation = tickets.keep(systemClock)
      return { stop: async () => rotation.cancel() }
    },
  }
}

/** RFC 6797 section 6.1. Not for names below, which may have no certificate. */
function strictTransport(seconds: number): string {
  return seconds === 0 ? '' : `\r\nStrict-Transport-Security: max-age=${seconds}`
}
