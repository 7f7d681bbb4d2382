import { randomBytes } from 'node:crypto'
import type { Config } from '../../config/read.js'
import { systemClock } from '../actor/clock.js'
import type { Part } from '../actor/supervise.js'
import { type CertificatePair, readPair } from '../certificates/pair.js'
import { tlsPortsShared } from '../http/listen.js'
import { TicketKeys } from '../http/ticket-keys.js'
import type { EdgeGiven } from '../threads/edge-given.js'
import { found, urlOf } from './ports.js'

/** The HTTPS listener of the gateway; nothing where the operator wants none. */
export interface TlsPlace {
  /** To be up before the edge threads. */
  readonly parts: Part[]
  /** What the edge thread of this number (from 0) serves. */
  place(index: number): Pick<EdgeGiven, 'tls'>
  urls(): Readonly<Record<string, string>>
}

/** `host`: where the gateway listens. */
export function tlsOf({ tls }: Config, host: string): TlsPlace {
  const { port: wanted, certFile, keyFile, unknownName } = tls
  if (wanted === undefined || certFile === undefined || keyFile === undefined)
    return { parts: [], place: () => ({}), urls: () => ({}) }
  let port = wanted
  let pairs: readonly CertificatePair[] = []
  const tickets = new TicketKeys(TicketKeys.memory(), randomBytes)
  // Shared by all threads, so that they answer one another's requests only where these came over TLS, too.
  const group = new SharedArrayBuffer(8)
  return {
    parts: [
      {
        name: 'certificates',
        start: async () => {
          pairs = [readPair(certFile, keyFile)]
          const rotation = tickets.keep(systemClock)
          return { stop: async () => rotation.cancel() }
        },
      },
      found(host, wanted, 'TLS_PORT', (free) => {
        port = free
      }),
    ],
    place: (index) =>
      index > 0 && !tlsPortsShared
        ? {}
        : { tls: { host, port, pairs, ticketKeys: tickets.bytes, unknownName, group } },
    urls: () => ({ https: urlOf(host, port, 'https') }),
  }
}
