import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import type { Dispatcher } from 'undici'
import type { Clock } from '../actor/clock.js'
import { type Announced, type AnnounceRequest, type Announcing, announceHttp } from './announce.js'
import { isNearAddress } from './compact-peers.js'
import { type Dht, dhtUrl } from './dht.js'
import { type UdpAnswer, UdpSession, type UdpTimeouts } from './udp-announce.js'

export interface TrackerClientParts {
  readonly dispatcher: Dispatcher
  /** Time-out of one request over HTTP. */
  readonly timeoutMs: number
  readonly timeouts: UdpTimeouts
  /** Undefined: none is used. */
  readonly dht?: Dht | undefined
  readonly clock: Clock
}

/**
 * Announces to a tracker, over HTTP or UDP by its address, or to the distributed hash table, and gets peers.
 * A UDP tracker that has IPv4 and IPv6 gets the announce over both. Undefined where there is no valid answer. Never
 * rejects; over UDP it takes as long as `timeouts` allows.
 */
export async function announceTo(
  what: AnnounceRequest,
  parts: TrackerClientParts,
  signal: AbortSignal,
): Promise<Announced | undefined> {
  if (what.url === dhtUrl) return parts.dht?.announce(what, signal)
  const { infohashes, ...about } = what
  const all = infohashes.map((infohash) => ({ ...about, infohash }))
  const isUdp = what.url.startsWith('udp:')
  const replies = isUdp
    ? await announceUdp(what.url, all, parts, signal)
    : await Promise.all(all.map((one) => announceHttp(one, parts.dispatcher, parts.timeoutMs, signal)))
  const answers = replies.filter((answer) => answer !== undefined)
  const [first] = answers
  if (first === undefined) return undefined
  // A public tracker could otherwise make us connect to machines in our own network, so private addresses are left
  // out.
  const isNear = isNearAddress(new URL(what.url).hostname)
  const peers = answers.flatMap((answer) => answer.peers)
  return {
    intervalSeconds: first.intervalSeconds,
    peers: peers.filter(({ host }) => isNear || !isNearAddress(host)),
  }
}

async function announceUdp(
  url: string,
  all: readonly Announcing[],
  { timeouts, clock }: TrackerClientParts,
  signal: AbortSignal,
): Promise<readonly (Announced | undefined)[]> {
  const { hostname, port } = new URL(url)
  const name = hostname.replace(/^\[|\]$/g, '')
  const found = await lookup(name, { all: true }).catch(() => [])
  const answers = await Promise.all(
    [4, 6].map(async (family) => {
      const host = found.find((one) => one.family === family)?.address
      if (host === undefined || isIP(host) === 0 || signal.aborted) return []
      const session = await UdpSession.open({ host, port: Number(port), isV6: family === 6 }, timeouts, clock)
      if (session === undefined) return []
      const stop = (): void => session.close()
      signal.addEventListener('abort', stop)
      if (signal.aborted) stop()
      const replies: (UdpAnswer | undefined)[] = []
      for (const one of all) {
        // A tracker that did not answer the first announce gets no second one: it would only take the same time once
        // more.
        if (replies.length === 0 || replies.at(-1) !== undefined) replies.push(await session.announce(one))
      }
      signal.removeEventListener('abort', stop)
      session.close()
      return replies.map((answer) => (answer?.kind === 'announced' ? answer : undefined))
    }),
  )
  return answers.flat()
}
