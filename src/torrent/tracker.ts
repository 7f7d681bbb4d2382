import type { Clock } from '../actor/clock.js'
import { FreeShares } from '../actor/free-shares.js'
import { sourceOf } from './address-source.js'
import { type Bencodable, encodeBencode } from './bencode.js'
import { addressBytes, encodePeers, type PeerAddress } from './compact-peers.js'
import { TrackerSwarm } from './tracker-swarm.js'

/** A closed HTTP tracker (BEP 3, 7, 23): peers of the torrents that are offered here find each other, and nobody else. */

export interface TrackerOptions {
  /** Peers in an answer: a random sample. */
  readonly answerMax: number
  readonly perTorrentMax: number
  readonly totalMax: number
  /** Ports of one address for one torrent: several users may share one public address. */
  readonly portsPerAddressMax: number
  /** A minute, for each address (of IPv6: its /64) and torrent. */
  readonly announcesPerMinute: number
  /** Seconds until peers should, and may, announce again. */
  readonly intervalSeconds: number
  readonly minSeconds: number
}

export const trackerDefaults: TrackerOptions = {
  answerMax: 50,
  perTorrentMax: 2000,
  totalMax: 50_000,
  portsPerAddressMax: 4,
  announcesPerMinute: 10,
  intervalSeconds: 300,
  minSeconds: 75,
}

/** An announce as it came in over HTTP. */
export interface Announce {
  /** Behind the question mark, as sent. */
  readonly query: string
  /** The peer's address. An address in the query is ignored: otherwise anybody could send peers to a victim's address. */
  readonly address: string
}

/** The parameters of an announce. */
interface AnnounceQuery {
  readonly infohash: string
  readonly port: number
  readonly isStopped: boolean
  readonly wanted: number
}

const minuteMs = 60_000

function failure(why: string): Buffer {
  return encodeBencode(new Map([['failure reason', why]]))
}

/** The tracker's state, all of it in memory: peers announce again soon after a restart. */
export class Tracker {
  /** Keyed by infohash (v1, and v2 cut to 20 bytes), as Latin-1 text. */
  #swarms = new Map<string, TrackerSwarm>()
  #total = 0
  readonly #announces = new Map<string, number>()
  /** Places in that table. */
  #askers: FreeShares
  #minute = -1

  constructor(
    private readonly options: TrackerOptions,
    private readonly clock: Clock,
  ) {
    this.#askers = new FreeShares(options.totalMax)
  }

  /** Sets the torrents that the tracker serves, by infohash of 20 bytes; peers of others are forgotten. */
  offer(infohashes: readonly Buffer[]): void {
    const kept = new Map<string, TrackerSwarm>()
    for (const infohash of infohashes) {
      const key = infohash.toString('latin1')
      kept.set(key, this.#swarms.get(key) ?? new TrackerSwarm(this.options.perTorrentMax))
    }
    this.#swarms = kept
    this.#total = [...kept.values()].reduce((sum, swarm) => sum + swarm.size, 0)
  }

  /**
   * The answer's body: bencoded, also where it is a failure, which trackers send with status 200. `own`: where this
   * program's seeder is reached; the first peers of each answer.
   */
  announce({ query, address }: Announce, own: readonly PeerAddress[]): Buffer {
    const announced = readAnnounce(query, this.options.answerMax)
    if (announced === undefined) return failure('malformed announce')
    const swarm = this.#swarms.get(announced.infohash)
    if (swarm === undefined) return failure('unregistered torrent')
    if (addressBytes(address) === undefined) return failure('no address')
    if (!this.#mayAsk(address, announced.infohash)) return failure('requested too often')
    const now = this.clock.monotonic()
    this.#total -= swarm.expire(now - this.options.intervalSeconds * 2500)
    const peer = { host: address, port: announced.port }
    if (!announced.isStopped) this.#keep(swarm, peer, now)
    else if (swarm.remove(peer)) this.#total -= 1
    return this.#answer(swarm, peer, announced.wanted, own)
  }

  #answer(swarm: TrackerSwarm, asker: PeerAddress, wanted: number, own: readonly PeerAddress[]): Buffer {
    const { v4, v6 } = encodePeers([...own, ...swarm.sample(asker, Math.max(0, wanted - own.length))])
    const answer = new Map<string, Bencodable>([
      ['complete', own.length],
      ['incomplete', swarm.size],
      ['interval', this.options.intervalSeconds],
      ['min interval', this.options.minSeconds],
      ['peers', v4],
    ])
    if (v6.length > 0) answer.set('peers6', v6)
    return encodeBencode(answer)
  }

  #keep(swarm: TrackerSwarm, peer: PeerAddress, now: number): void {
    const { totalMax, portsPerAddressMax } = this.options
    if (swarm.see(peer, now) || swarm.portsOf(peer.host) >= portsPerAddressMax) return
    const before = swarm.size
    swarm.add(peer, now, this.#total >= totalMax)
    this.#total += swarm.size - before
  }

  #mayAsk(address: string, infohash: string): boolean {
    const minute = Math.floor(this.clock.monotonic() / minuteMs)
    // All are forgotten once a minute, so the table is bounded by the announces of one minute.
    if (minute !== this.#minute) {
      this.#announces.clear()
      this.#askers = new FreeShares(this.options.totalMax)
    }
    this.#minute = minute
    const key = `${sourceOf(address)} ${infohash}`
    const times = this.#announces.get(key) ?? 0
    if (times >= this.options.announcesPerMinute) return false
    if (times === 0 && typeof this.#askers.take(address) === 'string') return false
    this.#announces.set(key, times + 1)
    return true
  }
}

/** Percent-encoded bytes as Latin-1 text; undefined where the encoding is broken. */
function unescapeBytes(text: string): string | undefined {
  if (/%(?![0-9A-Fa-f]{2})/.test(text) || !/^[\x21-\x7e]*$/.test(text)) return undefined
  return text
    .replace(/\+/g, ' ')
    .replace(/%(..)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}

function readAnnounce(query: string, answerMax: number): AnnounceQuery | undefined {
  if (query.length > 2048) return undefined
  const fields = new Map<string, string>()
  for (const part of query.split('&')) {
    const at = part.indexOf('=')
    if (at <= 0) continue
    const [name, value] = [part.slice(0, at), unescapeBytes(part.slice(at + 1))]
    if (value === undefined || fields.has(name)) return undefined
    fields.set(name, value)
  }
  const infohash = fields.get('info_hash') ?? ''
  const port = whole(fields.get('port'))
  const wanted = whole(fields.get('numwant')) ?? answerMax
  if (infohash.length !== 20 || port === undefined || port < 1 || port > 65535) return undefined
  const isStopped = fields.get('event') === 'stopped'
  return { infohash, port, isStopped, wanted: isStopped ? 0 : Math.min(wanted, answerMax) }
}

function whole(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined
}
