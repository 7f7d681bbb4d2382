import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import type { Dispatcher } from 'undici'
import type { Clock } from '../actor/clock.js'
import { type Announced, type Announcing, announce } from './announce.js'
import { isNearAddress } from './compact-peers.js'
import { type Dht, dhtUrl } from './dht.js'
import { type UdpAnswer, type UdpPatience, UdpSession } from './udp-announce.js'

export interface TellParts {
  readonly dispatcher: Dispatcher
  /** Of one request over HTTP. */
  readonly timeoutMs: number
  readonly patience: UdpPatience
  /** Undefined: none is asked. */
  readonly dht?: Dht | undefined
  readonly clock: Clock
}

/** One announce of a torrent, under each of its infohashes. */
export interface Telling extends Omit<Announcing, 'infohash'> {
  readonly infohashes: readonly Uint8Array[]
}

/**
 * Tells a tracker, over HTTP or UDP as its address says, or the distributed hash table; and asks for others. A tracker is told
 * over IPv4 and IPv6 where it has both and speaks UDP. Undefined where it does not answer as a tracker. Never rejects; over UDP
 * it takes as long as `patience` has it.
 */
export async function tell(
  what: Telling,
  parts: TellParts,
  signal: AbortSignal,
): Promise<Announced | undefined> {
  if (what.url === dhtUrl) return parts.dht?.tell(what, signal)
  const { infohashes, ...about } = what
  const all = infohashes.map((infohash) => ({ ...about, infohash }))
  const isUdp = what.url.startsWith('udp:')
  const said = isUdp
    ? await tellUdp(what.url, all, parts, signal)
    : await Promise.all(all.map((one) => announce(one, parts.dispatcher, parts.timeoutMs, signal)))
  const answers = said.filter((answer) => answer !== undefined)
  const [first] = answers
  if (first === undefined) return undefined
  // A tracker out in the world has no business sending us to machines in our own network.
  const isNear = isNearAddress(new URL(what.url).hostname)
  const peers = answers.flatMap((answer) => answer.peers)
  return {
    intervalSeconds: first.intervalSeconds,
    peers: peers.filter(({ host }) => isNear || !isNearAddress(host)),
  }
}

async function tellUdp(
  url: string,
  all: readonly Announcing[],
  { patience, clock }: TellParts,
  signal: AbortSignal,
): Promise<readonly (Announced | undefined)[]> {
  const { hostname, port } = new URL(url)
  const name = hostname.replace(/^\[|\]$/g, '')
  const found = await lookup(name, { all: true }).catch(() => [])
  const answers = await Promise.all(
    [4, 6].map(async (family) => {
      const host = found.find((one) => one.family === family)?.address
      if (host === undefined || isIP(host) === 0 || signal.aborted) return []
      const session = await UdpSession.open({ host, port: Number(port), isV6: family === 6 }, patience, clock)
      if (session === undefined) return []
      const stop = (): void => session.close()
      signal.addEventListener('abort', stop)
      if (signal.aborted) stop()
      const said: (UdpAnswer | undefined)[] = []
      for (const one of all) {
        // Who is silent about one is silent about the next.
        if (said.length === 0 || said.at(-1) !== undefined) said.push(await session.announce(one))
      }
      signal.removeEventListener('abort', stop)
      session.close()
      return said.map((answer) => (answer?.kind === 'announced' ? answer : undefined))
    }),
  )
  return answers.flat()
}
