import { connect } from 'node:net'
import type { Clock, Timer } from '../actor/clock.js'
import type { Torrent } from '../format/torrent.js'
import { Asking, type Encryption } from './agreement.js'
import { isNearAddress, type PeerAddress } from './compact-peers.js'
import { type DownloadDesk, LeecherPeer, patienceMs } from './leecher-peer.js'
import { PieceStore } from './piece-store.js'
import { carryPiece, type WebSeed } from './web-seed.js'
import { type LineEnd, type LineOptions, PeerLine } from './wire-line.js'

export interface DownloadOptions {
  readonly peersMax: number
  readonly connectMs: number
  /** Without a byte from peers for so long, HTTP is asked too, until the end. */
  readonly webAfterMs: number
  /** Pieces asked for over HTTP at once. */
  readonly webAtOnce: number
  readonly memoryMaxBytes: number
  /** Without a right piece for so long, it is given up: another band may have the place. */
  readonly giveUpMs: number
  readonly line: LineOptions
  readonly encryption: Encryption
  /** True: peers may be in networks of our own. Else such addresses, whoever told them, are not tried. */
  readonly isNear: boolean
}

export const downloadDefaults = {
  peersMax: 20,
  connectMs: 5000,
  webAfterMs: 10_000,
  webAtOnce: 4,
  memoryMaxBytes: 32 << 20,
  giveUpMs: 600_000,
  encryption: 'accept',
} as const

/** Addresses remembered; a tracker's answer has 50. */
const knownMax = 500
const retryMs = 15_000
/** The other way of speaking is tried the sooner. */
const otherWayMs = 1000
/** Failures of the HTTP server one after the other; then it rests. */
const webRestMs = 5000

interface Known extends PeerAddress {
  /** Not before. */
  retryMs: number
  /** Sent something that was not the torrent's, or was somebody else: never again. */
  isBad: boolean
  /** How it is spoken to next. */
  isEncrypted: boolean
  failures: number
}

/** One torrent on its way into a folder, from peers and over HTTP. */
export class Download implements DownloadDesk {
  readonly store: PieceStore
  readonly #known = new Map<string, Known>()
  readonly #peers = new Set<LeecherPeer>()
  readonly #end = new AbortController()
  readonly #finished: Promise<boolean>
  #finish: (isWhole: boolean) => void = () => undefined
  #fail: (error: Error) => void = () => undefined
  #timer: Timer | undefined
  #receivedMs = 0
  #movedMs = 0
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
    this.#finished = new Promise((resolve, reject) => {
      this.#finish = resolve
      this.#fail = reject
    })
    this.#finished.catch(() => 'told to whoever runs it')
  }

  /** Addresses that may have the torrent. */
  heardOf(peers: readonly PeerAddress[]): void {
    const isEncrypted = this.options.encryption === 'prefer' || this.options.encryption === 'require'
    for (const { host, port } of peers) {
      const key = `${host} ${port}`
      if (this.#known.size >= knownMax || this.#known.has(key)) continue
      if (!this.options.isNear && isNearAddress(host)) continue
      this.#known.set(key, { host, port, retryMs: 0, isBad: false, isEncrypted, failures: 0 })
    }
    if (this.#timer !== undefined) this.#connect()
  }

  /**
   * True when every piece is on disk and right; false when nothing right came for long. Rejects where the disk refuses, or when
   * it is stopped.
   */
  async run(): Promise<boolean> {
    await this.store.prepare()
    if (this.#end.signal.aborted) throw new Error('stopped')
    this.#receivedMs = this.clock.monotonic()
    if (this.store.isWhole) return true
    this.#movedMs = this.#receivedMs
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
    this.#receivedMs = this.clock.monotonic()
  }

  moved(): void {
    if (this.store.missingBytes < this.#missingBytes) this.#movedMs = this.clock.monotonic()
    this.#missingBytes = this.store.missingBytes
    if (this.store.isWhole) this.#finish(true)
    else for (const peer of this.#peers) peer.ask()
  }

  gone(peer: LeecherPeer, reason: LineEnd): void {
    this.#peers.delete(peer)
    const known = this.#known.get(`${peer.address.host} ${peer.address.port}`)
    if (known === undefined) return
    const { encryption } = this.options
    const isOpen = encryption === 'accept' || encryption === 'prefer'
    // Who hangs up on one way of speaking may take the other.
    const isOther = isOpen && !peer.isGreeted
    known.retryMs = this.clock.monotonic() + (isOther && known.failures === 0 ? otherWayMs : retryMs)
    if (isOther) known.isEncrypted = !known.isEncrypted
    known.failures += 1
    known.isBad = reason === 'forged' || reason === 'unknown' || reason === 'done'
  }

  #close(): void {
    this.#timer?.cancel()
    this.#end.abort()
    for (const peer of this.#peers) peer.line.end('done')
  }

  #tick(): void {
    const now = this.clock.monotonic()
    if (now - this.#movedMs > this.options.giveUpMs) this.#finish(false)
    for (const peer of this.#peers) peer.tick(now)
    this.#connect()
    this.#webOn ||= this.web !== undefined && now - this.#receivedMs >= this.options.webAfterMs
    if (this.#webOn) this.#askWeb()
  }

  #connect(): void {
    const now = this.clock.monotonic()
    const taken = new Set(Array.from(this.#peers, ({ address: { host, port } }) => `${host} ${port}`))
    for (const [key, known] of this.#known) {
      if (this.#peers.size >= this.options.peersMax) return
      if (known.isBad || known.retryMs > now || taken.has(key)) continue
      known.retryMs = now + retryMs
      this.#open(known)
    }
  }

  #open({ host, port, isEncrypted }: Known): void {
    const { infohashV1 } = this.torrent
    const peer = new LeecherPeer(this, { host, port }, infohashV1)
    const asking = isEncrypted ? new Asking(infohashV1, this.options.encryption === 'require') : undefined
    const socket = connect({ host, port })
    const { line, connectMs } = this.options
    peer.line = new PeerLine(socket, { ...line, handshakeMs: connectMs }, this.clock, peer, asking)
    this.#peers.add(peer)
    socket.once('connect', () => {
      if (asking !== undefined) peer.line.begin(asking.begin())
      peer.begin()
    })
  }

  #askWeb(): void {
    const now = this.clock.monotonic()
    while (this.#webUnderWay < this.options.webAtOnce && now >= this.#webRestMs && !this.store.isWhole) {
      const intake = this.store.start(() => true, now, patienceMs)
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
