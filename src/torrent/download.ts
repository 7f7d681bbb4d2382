import { connect } from 'node:net'
import type { Clock, Timer } from '../actor/clock.js'
import { bytesPerSecondMin, SenderPace } from '../http/sender-pace.js'
import { isNearAddress, type PeerAddress } from './compact-peers.js'
import { type KnownPeer, KnownPeers, knownPeersDefaults } from './known-peers.js'
import { type DownloadParts, LeecherPeer, patienceMs } from './leecher-peer.js'
import { type Encryption, MseInitiator } from './mse-handshake.js'
import { type ConnectionEnd, PeerConnection, type PeerConnectionOptions } from './peer-connection.js'
import { PieceStore } from './piece-store.js'
import type { Torrent } from './torrent.js'
import { carryPiece, type WebSeed } from './web-seed.js'

export interface DownloadOptions {
  readonly peersMax: number
  readonly connectMs: number
  /** After so long without a valid piece from peers, pieces are also fetched over HTTP, until the download ends. */
  readonly webAfterMs: number
  /** Pieces fetched over HTTP at the same time. */
  readonly webAtOnce: number
  readonly memoryMaxBytes: number
  /**
   * A download is given up when it gets no valid piece for so long, or valid pieces at a lower average rate than that.
   * Then another torrent can have its place.
   */
  readonly giveUpMs: number
  /** While other peers wait to be tried, a peer that sends nothing for so long is disconnected. */
  readonly uselessMs: number
  readonly line: PeerConnectionOptions
  readonly encryption: Encryption
  /**
   * True: peers may be in private networks. Otherwise such addresses are never tried, so that nobody can direct
   * connections at machines in the operator's network.
   */
  readonly isNear: boolean
}

export const downloadDefaults = {
  peersMax: 20,
  connectMs: 5000,
  webAfterMs: 10_000,
  webAtOnce: 4,
  memoryMaxBytes: 32 << 20,
  giveUpMs: 600_000,
  uselessMs: 60_000,
  encryption: 'accept',
} as const

/**
 * A peer that needs longer for its requested blocks is disconnected where another one has nothing to do. Otherwise a few slow
 * ones could hold all missing pieces, or the memory for them, for ever.
 */
const slowMs = 30_000

const retryMs = 15_000
/** After a failed handshake the other one (encrypted or plain) is tried after this shorter time. */
const otherWayMs = 1000
/** Pause after a failure of the HTTP server. */
const webRestMs = 5000

/** Downloads one torrent into a folder, from peers and over HTTP. */
export class Download implements DownloadParts {
  readonly store: PieceStore
  readonly #known: KnownPeers
  readonly #peers = new Set<LeecherPeer>()
  readonly #end = new AbortController()
  readonly #finished: Promise<boolean>
  #finish: (isWhole: boolean) => void = () => undefined
  #fail: (error: Error) => void = () => undefined
  #timer: Timer | undefined
  #movedMs = 0
  readonly #pace: SenderPace
  #missingBytes = 0
  #webRestMs = 0
  #webUnderWay = 0
  #webOn = false
  receivedBytes = 0

  constructor(
    readonly torrent: Torrent,
    folder: string,
    private readonly options: DownloadOptions,
    readonly clock: Clock,
    readonly peerId: Buffer,
    /** Undefined: peers only. */
    private readonly web?: WebSeed,
  ) {
    this.store = new PieceStore(torrent, folder, options.memoryMaxBytes)
    this.#known = new KnownPeers(knownPeersDefaults, clock)
    this.#pace = new SenderPace({ stallMs: options.giveUpMs, bytesPerSecondMin }, clock)
    this.#finished = new Promise((resolve, reject) => {
      this.#finish = resolve
      this.#fail = reject
    })
    this.#finished.catch(() => 'handled by the caller of run')
  }

  /** Addresses that may have the torrent, by `source` (a tracker, the table, a peer). */
  addPeers(peers: readonly PeerAddress[], source = ''): void {
    const isEncrypted = this.options.encryption === 'prefer' || this.options.encryption === 'require'
    for (const peer of peers) {
      if (this.options.isNear || !isNearAddress(peer.host)) this.#known.add(source, peer, isEncrypted)
    }
    if (this.#timer !== undefined) this.#connect()
  }

  /**
   * True when every piece is on disk and has the right hash; false when no valid piece came for too long
   * (`giveUpMs`). Rejects where writing fails, or when it is stopped.
   */
  async run(): Promise<boolean> {
    await this.store.prepare()
    if (this.#end.signal.aborted) throw new Error('stopped')
    this.#movedMs = this.clock.monotonic()
    if (this.store.isWhole) return true
    this.#pace.wait()
    this.#missingBytes = this.store.missingBytes
    this.#timer = this.clock.every(500, () => this.#tick())
    this.#tick()
    try {
      return await this.#finished
    } finally {
      this.#close()
    }
  }

  stop(): void {
    this.failed(new Error('stopped'))
  }

  failed(error: Error): void {
    this.#fail(error)
    this.#close()
  }

  get peers(): number {
    return this.#peers.size
  }

  received(bytes: number): void {
    this.receivedBytes += bytes
  }

  moved(): void {
    if (this.store.missingBytes < this.#missingBytes) this.#movedMs = this.clock.monotonic()
    this.#pace.came(Math.max(0, this.#missingBytes - this.store.missingBytes))
    this.#pace.wait()
    this.#missingBytes = this.store.missingBytes
    if (this.store.isWhole) this.#finish(true)
    else for (const peer of this.#peers) peer.ask()
  }

  onPeerClosed(peer: LeecherPeer, reason: ConnectionEnd): void {
    this.#peers.delete(peer)
    const known = this.#known.find(peer.address)
    if (known === undefined) return
    const { encryption } = this.options
    const isOpen = encryption === 'accept' || encryption === 'prefer'
    // A peer that closes a plain connection may accept an encrypted one, and the other way round.
    const isOther = isOpen && !peer.isGreeted
    known.isBad = reason === 'forged' || reason === 'unknown' || reason === 'done'
    if (peer.isUseful) known.failures = 0
    const againMs = isOther && known.failures === 0 ? otherWayMs : retryMs
    if (isOther) known.isEncrypted = !known.isEncrypted
    if (peer.isUseful) known.retryMs = this.clock.monotonic() + retryMs
    else this.#known.failed(known, againMs)
  }

  #close(): void {
    this.#timer?.cancel()
    this.#end.abort()
    for (const peer of this.#peers) peer.connection.end('done')
  }

  #tick(): void {
    const now = this.clock.monotonic()
    if (this.#pace.leftMs <= 0) this.#finish(false)
    for (const peer of this.#peers) peer.tick(now)
    this.#leaveUseless(now)
    this.#leaveSlow(now)
    this.#connect()
    this.#webOn ||= this.web !== undefined && now - this.#movedMs >= this.options.webAfterMs
    if (this.#webOn) this.#askWeb()
  }

  /** Keys of the peers that are connected, as in `KnownPeers`. */
  get #taken(): Set<string> {
    return new Set(Array.from(this.#peers, ({ address: { host, port } }) => `${host} ${port}`))
  }

  #connect(): void {
    while (this.#peers.size < this.options.peersMax) {
      const known = this.#known.next(this.#taken)
      if (known === undefined) return
      known.retryMs = this.clock.monotonic() + retryMs
      this.#open(known)
    }
  }

  /** Disconnects the peer that has sent nothing for the longest time, where all places are taken and other peers wait. */
  #leaveUseless(now: number): void {
    if (this.#peers.size < this.options.peersMax || !this.#known.hasNext(this.#taken)) return
    const [idlest] = [...this.#peers].sort((one, other) => one.sentMs - other.sentMs)
    if (idlest !== undefined && now - idlest.sentMs > this.options.uselessMs) idlest.connection.end('stalled')
  }

  #leaveSlow(now: number): void {
    const peers = [...this.#peers]
    if (!peers.some(({ isIdle }) => isIdle)) return
    const [slowest] = peers.sort((one, other) => other.leftMs(now) - one.leftMs(now))
    if (slowest === undefined || slowest.leftMs(now) <= slowMs) return
    slowest.isUseful = false
    slowest.connection.end('stalled')
    for (const peer of this.#peers) peer.ask()
  }

  #open({ host, port, isEncrypted }: KnownPeer): void {
    const { infohashV1 } = this.torrent
    const peer = new LeecherPeer(this, { host, port }, infohashV1)
    const asking = isEncrypted
      ? new MseInitiator(infohashV1, this.options.encryption === 'require')
      : undefined
    const socket = connect({ host, port })
    const { line, connectMs } = this.options
    peer.connection = new PeerConnection(
      socket,
      { ...line, handshakeMs: connectMs },
      this.clock,
      peer,
      asking,
    )
    this.#peers.add(peer)
    socket.once('connect', () => {
      if (asking !== undefined) peer.connection.begin(asking.begin())
      peer.begin()
    })
  }

  #askWeb(): void {
    const now = this.clock.monotonic()
    while (this.#webUnderWay < this.options.webAtOnce && now >= this.#webRestMs && !this.store.isWhole) {
      const intake = this.store.start(() => true, now, patienceMs, true)
      if (intake === undefined || this.web === undefined) return
      this.#webUnderWay += 1
      const { store } = this
      const taking = (begin: number, bytes: Uint8Array): boolean => store.take(intake, begin, bytes)
      void carryPiece(this.web, this.torrent, intake, taking, this.#end.signal)
        .then(async (outcome) => {
          if (outcome !== 'carried') store.abandon(intake)
          else {
            this.received(intake.bytes.length)
            if (await store.finish(intake)) return
          }
          this.#webRestMs = this.clock.monotonic() + webRestMs
        })
        .catch((error: Error) => this.failed(error))
        .finally(() => {
          this.#webUnderWay -= 1
          if (this.#end.signal.aborted) return
          this.moved()
          this.#askWeb()
        })
    }
  }
}
