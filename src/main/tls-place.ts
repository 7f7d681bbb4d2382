import { randomBytes } from 'node:crypto'
import type { Config } from '../../config/read.js'
import { hasTls } from '../../config/tls.js'
import { systemClock } from '../actor/clock.js'
import type { Part } from '../actor/supervise.js'
import { type SecurePlace, tlsPortsShared } from '../http/listen.js'
import { TicketKeys } from '../http/ticket-keys.js'
import type { EdgeGiven } from '../threads/edge-given.js'
import {
  type CertificatesGiven,
  type CertificatesRead,
  challengesFolder,
  ProgramCertificates,
} from './certificates.js'
import { nodeLine } from './node-line.js'
import { found, urlOf } from './ports.js'

/** One listener of HTTPS; nothing where the operator wants none. */
export interface TlsListener {
  /** Finds its port; to be up before the thread that listens. */
  readonly parts: Part[]
  /** Where a thread listens that is started now. */
  place(): SecurePlace | undefined
  /** What to open on this machine, under this name. */
  urls(name: string): Readonly<Record<string, string>>
}

/** What all listeners of HTTPS have in common: certificates, and keys of tickets. */
export interface TlsPlaces {
  readonly host: string
  /** To be up before any listener. */
  readonly parts: Part[]
  /** To be up after the listeners, which answer the challenges of the ACME server. */
  readonly watches: Part[]
  /** `port` is that of the setting; undefined: there is no such listener. */
  listener(port: number | undefined, setting: string): TlsListener
  /** Reads the certificates again. */
  reload(): CertificatesRead
}

const nothingRead: CertificatesRead = { refused: [], isOtherCertificate: false }

const noListener: TlsListener = { parts: [], place: () => undefined, urls: () => ({}) }

/** `usualHost`: where the gateway listens. */
export function tlsPlaces(config: Config, usualHost: string, given: CertificatesGiven): TlsPlaces {
  const host = config.tls.listenAddress ?? usualHost
  if (!hasTls(config.tls))
    return { host, parts: [], watches: [], listener: () => noListener, reload: () => nothingRead }
  const certificates = new ProgramCertificates(config, given)
  const tickets = new TicketKeys(TicketKeys.memory(), randomBytes)
  const { unknownName, hstsSeconds } = config.tls
  const place = (port: number): SecurePlace => ({
    host,
    port,
    pairs: certificates.pairs,
    ticketKeys: tickets.bytes,
    unknownName,
    lines: strictTransport(hstsSeconds) + nodeLine(config),
  })
  return {
    host,
    parts: [certificates.part(), rotating(tickets)],
    watches: certificates.renewal(),
    listener(wanted, setting) {
      if (wanted === undefined) return noListener
      let port = wanted
      const finding = found(host, wanted, setting, (free) => {
        port = free
      })
      return {
        parts: [finding],
        place: () => place(port),
        urls: (name) => ({ [name]: urlOf(host, port, 'https') }),
      }
    },
    reload: () => certificates.reload(),
  }
}

/** Options of a service's HTTPS listener for its thread. */
export function securePlace(
  listener: TlsListener,
  { tls }: Pick<Config, 'tls'>,
): { readonly tls?: SecurePlace & { readonly hidesOperators: boolean } } {
  const place = listener.place()
  return place === undefined ? {} : { tls: { ...place, hidesOperators: !tls.adminOnPublicListener } }
}

/** HTTPS of the gateway, and what redirects to it. */
export interface GatewayTls {
  readonly parts: Part[]
  /** What the edge thread of this number (from 0) serves. */
  place(index: number): Pick<EdgeGiven, 'tls' | 'redirect'>
  urls(): Readonly<Record<string, string>>
}

/** HTTPS of the gateway: its listener, and the one that redirects to it, where the settings want them. */
export function gatewayTls(config: Config, tls: TlsPlaces): GatewayTls {
  const listener = tls.listener(config.tls.port, 'TLS_PORT')
  // Shared by all threads, so that they answer one another's requests only where these came over TLS, too.
  const group = new SharedArrayBuffer(8)
  const challenges = challengesFolder(config)
  const { redirectPort } = config.tls
  const { host } = tls
  let port = redirectPort ?? 0
  const finding =
    redirectPort === undefined
      ? []
      : [
          found(host, redirectPort, 'HTTP_REDIRECT_PORT', (free) => {
            port = free
          }),
        ]
  return {
    parts: [...listener.parts, ...finding],
    place(index) {
      const place = listener.place()
      if (place === undefined) return {}
      return {
        ...(index > 0 && !tlsPortsShared ? {} : { tls: { ...place, group } }),
        ...(redirectPort === undefined
          ? {}
          : { redirect: { host, port, httpsPort: place.port, challenges } }),
      }
    },
    urls: () => ({
      ...listener.urls('https'),
      ...(redirectPort === undefined ? {} : { redirect: urlOf(host, port) }),
    }),
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
