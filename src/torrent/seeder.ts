import { randomBytes } from 'node:crypto'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import type { Clock, Timer } from '../actor/clock.js'
import { greediest, type Holdings } from '../actor/greediest.js'
import type { Meters } from '../actor/meter.js'
import { RateWindow } from '../actor/rate-window.js'
import { sourceOf } from './address-source.js'
import { Allowance, type AllowanceOptions } from './allowance.js'
import { runBytes } from './block-sender.js'
import { HashAnswers } from './hash-answer.js'
import { type Encryption, MseResponder, type MseResponderParts, veiledInfohash } from './mse-handshake.js'
import { OpenFiles } from './open-files.js'
import { type ConnectionEnd, PeerConnection, type PeerConnectionOptions } from './peer-connection.js'
import { type Seeded, type SeederParts, SeederPeer } from './seeder-peer.js'
import { infohashesOf } from './torrent.js'

export interface SeederOptions {
  readonly host: string
  /** 0: a free one. */
  readonly port: number
  readonly peersMax: number
  /** Peers of one address at most. */
  readonly peersPerAddressMax: number
  /** Upload slots: peers that are sent blocks at the same time. Others are choked until a slot is free. */
  readonly slotsMax: number
  /** How long a slot is kept while others wait. */
  readonly slotMs: number
  readonly upload: AllowanceOptions
  readonly line: PeerConnectionOptions
  readonly encryption: Encryption
}

/** Files that stay open: the torrent of an index in 256 partitions has 257. */
const openFilesMax = 300
/** Buffers kept for the next run; 128 KiB each. */
const buffersKept = 64
const exchangeEveryTicks = 60
/** Who could take blocks for so long may have to make room for a newcomer. */
const turnMs = 10_000
/** Secrets of encrypted connections, each network: at 0.25 ms each, a flood of them takes 2.5 % of a core. */
const secretTurns = { windowMs: 10_000, each: 20, all: 1000 }

const holdings: Holdings<SeederPeer> = { clientOf: ({ host }) => host, lead: 1, levels: 2, isNested: false }

/**
 * Seeds torrents to BitTorrent peers over TCP. Blocks are read from the files when a peer can take them; only the
 * hashes of a torrent are held in memory. For 50 peers that is 50 times two runs of 128 KiB.
 */
export class Seeder implements SeederParts {
  readonly peerId = Buffer.concat([Buffer.from('-SL0100-'), randomBytes(12)])
  port = 0
  readonly #server: Server
  readonly #files = new OpenFiles(openFilesMax)
  readonly #allowance: Allowance
  /** Keyed by each infohash that peers use for it, as Latin-1 text. */
  #seeded = new Map<string, Seeded>()
  /** Infohashes as encrypted connections name them, likewise. */
  #veiled = new Map<string, Buffer>()
  readonly #secrets: RateWindow
  readonly #peers = new Set<SeederPeer>()
  readonly #unchoked = new Set<SeederPeer>()
  /** In the order of their requests. */
  readonly #waiting = new Set<SeederPeer>()
  readonly #buffers: Buffer[] = []
  #timer: Timer | undefined
  #ticks = 0

  constructor(
    private readonly options: SeederOptions,
    readonly clock: Clock,
    private readonly meters: Meters,
  ) {
    this.#allowance = new Allowance(options.upload, clock)
    this.#secrets = new RateWindow(secretTurns, clock)
    this.#server = createServer({ noDelay: true }, (socket) => this.#accept(socket))
    this.#server.maxConnections = options.peersMax + 16
  }

  /** Begins to listen; resolves with the port. Rejects where the port is taken or not allowed. */
  async listen(): Promise<number> {
    const { host, port } = this.options
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen({ host, port }, () => resolve())
    })
    this.port = (this.#server.address() as AddressInfo).port
    this.#timer = this.clock.every(1000, () => this.#tick())
    return this.port
  }

  /**
   * Seeds these torrents and no others from now on; peers of other torrents are disconnected. `path` of each says
   * where its files lie.
   */
  offer(torrents: readonly Omit<Seeded, 'hashes'>[]): void {
    const before = this.#seeded
    this.#seeded = new Map()
    for (const offered of torrents) {
      const { torrent } = offered
      const v1 = torrent.infohashV1.toString('latin1')
      const seeded = before.get(v1) ?? { ...offered, hashes: new HashAnswers(torrent) }
      for (const infohash of infohashesOf(torrent)) this.#seeded.set(infohash.toString('latin1'), seeded)
    }
    this.#veiled = new Map(
      Array.from(this.#seeded.keys(), (key) => Buffer.from(key, 'latin1')).map((infohash) => {
        return [veiledInfohash(infohash).toString('latin1'), infohash]
      }),
    )
    const kept = new Set(this.#seeded.values())
    for (const peer of this.#peers) {
      if (peer.seeded !== undefined && !kept.has(peer.seeded)) peer.connection.end('done')
    }
    this.#files.forget()
  }

  async close(): Promise<void> {
    this.#timer?.cancel()
    this.#allowance.close()
    for (const peer of this.#peers) peer.connection.end('done')
    this.#files.forget()
    if (this.port !== 0) await new Promise<void>((resolve) => this.#server.close(() => resolve()))
  }

  find(infohash: Buffer): Seeded | undefined {
    return this.#seeded.get(infohash.toString('latin1'))
  }

  admit(peer: SeederPeer): boolean {
    if (this.#unchoked.size < this.options.slotsMax && !this.#allowance.isSpent) {
      this.#unchoked.add(peer)
      return true
    }
    this.#waiting.add(peer)
    return false
  }

  release(peer: SeederPeer): void {
    this.#waiting.delete(peer)
    if (this.#unchoked.delete(peer)) this.#fillSlots()
  }

  get isSpent(): boolean {
    return this.#allowance.isSpent
  }

  allow(bytes: number, go: () => void): () => void {
    return this.#allowance.take(bytes, go)
  }

  read(path: string, position: number, parts: readonly Uint8Array[]): Promise<boolean> {
    return this.#files.read(path, position, parts)
  }

  borrow(): Buffer {
    return this.#buffers.pop() ?? Buffer.allocUnsafeSlow(runBytes)
  }

  giveBack(buffer: Buffer): void {
    if (this.#buffers.length < buffersKept) this.#buffers.push(buffer)
  }

  sent(bytes: number): void {
    this.meters.of('torrent_sent_bytes_total').add(bytes)
  }

  onPeerClosed(peer: SeederPeer, reason: ConnectionEnd): void {
    if (!this.#peers.delete(peer)) return
    this.meters.of('torrent_peers').set(this.#peers.size)
    this.#count(reason)
  }

  #count(reason: ConnectionEnd): void {
    this.meters.of('torrent_connections_ended_total', { reason }).add(1)
  }

  #accept(socket: Socket): void {
    const host = (socket.remoteAddress ?? '').replace(/^::ffff:/, '')
    const source = sourceOf(host)
    let same = 0
    const silent: SeederPeer[] = []
    for (const peer of this.#peers) {
      if (peer.source === source) same += 1
      if (peer.seeded === undefined) silent.push(peer)
    }
    if (same >= this.options.peersPerAddressMax || !this.#hasPlace(host)) {
      socket.on('error', () => 'it is ended anyway')
      socket.destroy()
      this.#count('full')
      return
    }
    // Connections without a handshake may take half of the places at most; the oldest of them is closed first.
    if (silent.length >= Math.ceil(this.options.peersMax / 2)) silent[0]?.connection.end('full')
    const peer = new SeederPeer(this, host, source)
    const parts: MseResponderParts = {
      unveil: (veiled) => this.#veiled.get(veiled.toString('latin1')),
      mayAgree: () => this.#secrets.take(host),
    }
    const agreement = new MseResponder(this.options.encryption, parts)
    peer.connection = new PeerConnection(socket, this.options.line, this.clock, peer, agreement)
    this.#peers.add(peer)
    this.meters.of('torrent_peers').set(this.#peers.size)
  }

  /**
   * Whether there is a place for one more at this address. Where all are taken, the provider with most places loses one, or else
   * the network with most: its youngest peer without an upload slot, or else its youngest. So many addresses cannot keep others
   * out. Where nobody has more than others, who has taken the fewest bytes in its time loses its place: a message costs nothing,
   * and bytes do. One that waits for its first upload slot could not take any.
   */
  #hasPlace(host: string): boolean {
    if (this.#peers.size < this.options.peersMax) return true
    const most = greediest(this.#peers, host, holdings)
    if (most !== undefined) {
      const youngest = most.findLast((peer) => !this.#unchoked.has(peer)) ?? most.at(-1)
      youngest?.connection.end('full')
      return true
    }
    const now = this.clock.monotonic()
    const sinceOf = (peer: SeederPeer): number =>
      peer.servedMs ?? (this.#waiting.has(peer) ? Number.POSITIVE_INFINITY : peer.cameMs)
    const [least] = [...this.#peers]
      .filter((peer) => now - sinceOf(peer) >= turnMs)
      .sort((one, other) => one.takenRate(now) - other.takenRate(now) || one.cameMs - other.cameMs)
    least?.connection.end('full')
    return least !== undefined
  }

  #tick(): void {
    const now = this.clock.monotonic()
    this.#ticks += 1
    for (const peer of this.#peers) {
      peer.connection.tick(now)
      peer.sendNews()
    }
    if (this.#allowance.isSpent) for (const peer of this.#unchoked) this.#suspend(peer)
    else {
      this.#fillSlots()
      this.#rotate(now)
    }
    if (this.#ticks % exchangeEveryTicks === 0) this.#exchange()
  }

  #suspend(peer: SeederPeer): void {
    this.#unchoked.delete(peer)
    peer.choke()
    this.#waiting.add(peer)
  }

  #fillSlots(): void {
    for (const peer of this.#waiting) {
      if (this.#unchoked.size >= this.options.slotsMax || this.#allowance.isSpent) return
      this.#waiting.delete(peer)
      this.#unchoked.add(peer)
      peer.unchoke()
    }
  }

  /**
   * While peers wait, the one that has had its slot for the longest time is choked, and the first that waits is
   * unchoked.
   */
  #rotate(now: number): void {
    if (this.#waiting.size === 0) return
    let oldest: SeederPeer | undefined
    for (const peer of this.#unchoked) {
      if (oldest === undefined || peer.unchokedMs < oldest.unchokedMs) oldest = peer
    }
    if (oldest === undefined || now - oldest.unchokedMs < this.options.slotMs) return
    const [next] = this.#waiting
    this.#suspend(oldest)
    if (next === undefined) return
    this.#waiting.delete(next)
    this.#unchoked.add(next)
    next.unchoke()
  }

  #exchange(): void {
    for (const seeded of new Set(this.#seeded.values())) {
      const peers = [...this.#peers].filter((peer) => peer.seeded === seeded)
      const listening = peers.flatMap(({ listens }) => (listens === undefined ? [] : [listens]))
      for (const peer of peers) peer.exchange(listening)
    }
  }
}
