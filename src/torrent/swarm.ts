import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import type { Dispatcher } from 'undici'
import type { Clock, Timer } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Meters } from '../actor/meter.js'
import { isRefusal } from '../format/refusal.js'
import { Announcer } from './announcer.js'
import type { PeerAddress } from './compact-peers.js'
import type { Dht } from './dht.js'
import { Seeder, type SeederOptions } from './seeder.js'
import { infohashesOf, type Torrent } from './torrent.js'
import { readTorrent } from './torrent-reader.js'
import { type Announce, Tracker, type TrackerOptions } from './tracker.js'
import { announceTo } from './tracker-client.js'
import type { UdpTimeouts } from './udp-announce.js'

export interface SwarmOptions {
  readonly seeder: SeederOptions
  readonly tracker: TrackerOptions
  /** IP addresses under which the seeder is reached; none: the one that a client of the tracker used for the gateway. */
  readonly addresses: readonly string[]
  /** Trackers elsewhere (http, https, udp; `dht:` for the distributed hash table) that all torrents are announced to. */
  readonly trackers: readonly string[]
  readonly timeouts: UdpTimeouts
}

/** A torrent that is to be seeded. */
export interface SeededTorrent {
  /** 40 hex digits. */
  readonly infohashV1: string
  readonly torrentPath: string
  /** Trackers that only this one is announced to, beside those for all. */
  readonly trackers?: readonly string[]
  /** Where a file of it lies: while it is downloaded, and afterwards. */
  path(name: string): string
  /** Pieces that are here; absent: all. */
  has?(piece: number): boolean
}

interface Seeding {
  readonly torrent: Torrent
  readonly trackers: readonly string[]
  path(name: string): string
  has?(piece: number): boolean
}

/** An announce to the tracker. `host`: the name or address of this gateway, as the client stated it. */
export interface SwarmRequest extends Announce {
  readonly kind: 'announce'
  readonly host: string
}

export interface SwarmReply {
  readonly kind: 'announced'
  /** Bencoded. */
  readonly body: Uint8Array
}

/** Time between two looks at the offered torrents. */
const lookMs = 1000
const announceTimeoutMs = 15_000

/** Seeds torrents: the seeder, the tracker, and announces to trackers elsewhere. */
export class Swarm {
  readonly #seeder: Seeder
  readonly #tracker: Tracker
  #torrents = new Map<string, Seeding>()
  #timer: Timer | undefined
  /** Keyed by the tracker's address. */
  readonly #announcers = new Map<string, Announcer>()
  #stopped = false

  constructor(
    private readonly options: SwarmOptions,
    private readonly offerings: () => readonly SeededTorrent[],
    private readonly clock: Clock,
    private readonly meters: Meters,
    private readonly log: Log,
    private readonly dispatcher: Dispatcher,
    private readonly dht?: Dht,
  ) {
    this.#seeder = new Seeder(options.seeder, clock, meters)
    this.#tracker = new Tracker(options.tracker, clock)
  }

  /** Begins to listen; resolves with the port. Rejects where it cannot be had. */
  async start(): Promise<number> {
    const port = await this.#seeder.listen()
    await this.look()
    this.#again()
    return port
  }

  get peerId(): Buffer {
    return this.#seeder.peerId
  }

  /** Answers an announce. */
  handle(request: SwarmRequest): SwarmReply {
    const named = this.options.addresses.length > 0 ? this.options.addresses : literal(request.host)
    const own: PeerAddress[] = named.map((host) => ({ host, port: this.#seeder.port }))
    return { kind: 'announced', body: this.#tracker.announce(request, own) }
  }

  /** Looks at what is offered, and seeds that. */
  async look(): Promise<void> {
    const torrents = new Map<string, Seeding>()
    for (const offering of this.offerings()) {
      if (torrents.has(offering.infohashV1)) continue
      const known = this.#torrents.get(offering.infohashV1)
      const torrent = known?.torrent ?? (await this.#read(offering))
      if (torrent !== undefined) {
        const { infohashV1, trackers = [], has } = offering
        const path = (name: string): string => offering.path(name)
        torrents.set(infohashV1, { torrent, trackers, path, ...(has === undefined ? {} : { has }) })
      }
    }
    const same = torrents.size === this.#torrents.size
    const isKnown = same && [...torrents.keys()].every((infohash) => this.#torrents.has(infohash))
    this.#torrents = torrents
    this.#startAnnouncers()
    if (isKnown) return
    const all = [...torrents.values()]
    this.#seeder.offer(all)
    this.#tracker.offer(all.flatMap(({ torrent }) => infohashesOf(torrent)))
    this.log.info({ torrents: all.length }, 'torrents are seeded')
  }

  async close(): Promise<void> {
    this.#stopped = true
    this.#timer?.cancel()
    for (const announcer of this.#announcers.values()) announcer.stop()
    await this.#seeder.close()
  }

  #again(): void {
    this.#timer = this.clock.after(lookMs, () => {
      void this.look()
        .catch((error: unknown) =>
          this.log.error({ err: error }, 'the list of torrents to seed cannot be read'),
        )
        .then(() => {
          if (!this.#stopped) this.#again()
        })
    })
  }

  async #read({ infohashV1, torrentPath }: SeededTorrent): Promise<Torrent | undefined> {
    const bytes = await readFile(torrentPath).catch((error: Error) => error)
    const torrent = bytes instanceof Error ? undefined : readTorrent(bytes)
    if (torrent !== undefined && !isRefusal(torrent) && torrent.infohashV1.toString('hex') === infohashV1) {
      return torrent
    }
    const reason = bytes instanceof Error ? bytes.message : 'it has another infohash'
    this.log.warn({ infohash: infohashV1, reason }, 'a torrent file that is to be seeded cannot be read')
    return undefined
  }

  /** Starts an announcer for each tracker that is needed, and stops those that are not. */
  #startAnnouncers(): void {
    const named = [...this.#torrents.values()].flatMap(({ trackers }) => trackers)
    const urls = new Set([...this.options.trackers, ...named])
    for (const [url, announcer] of this.#announcers) {
      if (urls.has(url)) continue
      announcer.stop()
      this.#announcers.delete(url)
    }
    for (const url of urls) {
      if (this.#stopped || this.#announcers.has(url)) continue
      const announcer = this.#announcer(url)
      this.#announcers.set(url, announcer)
      announcer.start()
    }
  }

  #announcer(url: string): Announcer {
    const isForAll = this.options.trackers.includes(url)
    const { clock, meters, dispatcher } = this
    const { timeouts } = this.options
    const parts = { dispatcher, timeoutMs: announceTimeoutMs, timeouts, clock, dht: this.dht }
    return new Announcer(
      url,
      { peerId: this.#seeder.peerId, port: this.#seeder.port },
      {
        clock,
        meters,
        torrents: () => {
          const announced = [...this.#torrents.values()].filter(
            ({ trackers }) => isForAll || trackers.includes(url),
          )
          return announced.map(({ torrent }) => torrent)
        },
        announce: (what, signal) => announceTo(what, parts, signal),
      },
    )
  }
}

/** The address in a Host header, where it is one and no name. */
function literal(host: string): readonly string[] {
  const bare = /^\[(.*)\](:\d+)?$/.exec(host)?.[1] ?? host.replace(/:\d+$/, '')
  return isIP(bare) === 0 ? [] : [bare]
}
