import type { Clock } from '../actor/clock.js'
import { bytesPerSecondMin, SenderPace } from '../http/sender-pace.js'
import type { PeerAddress } from './compact-peers.js'
import { decodeExchange, decodeGreeting, encodeGreeting, ownIds } from './extension.js'
import type { ConnectionEnd, PeerConnection, PeerHandler } from './peer-connection.js'
import type { IncomingPiece, PieceStore } from './piece-store.js'
import { blockBytes } from './torrent.js'
import { type BlockSpan, encode, encodeHandshake, type Handshake, type Message } from './wire.js'

/** What a connection needs of the download that it belongs to. */
export interface DownloadParts {
  readonly clock: Clock
  readonly store: PieceStore
  readonly peerId: Buffer
  /** Bytes of blocks came in. */
  received(bytes: number): void
  /** A piece was finished or given up: other peers may have a piece to request. */
  moved(): void
  /** Writing to the disk failed. */
  failed(error: Error): void
  /** Other peers that this one knows. */
  addPeers(peers: readonly PeerAddress[], source: string): void
  onPeerClosed(peer: LeecherPeer, reason: ConnectionEnd): void
}

/** Blocks requested at once: 2 MiB. */
const requestedMax = 128
/** A peer with open requests that sends nothing for so long is dropped; one that sends very little, somewhat later. */
const silentMs = 30_000
/** Questions between two ticks that messages without a block set off: each looks through the missing pieces. */
const spurredMax = 4
/** A piece that a peer has been loading for so long is requested from a second peer too. */
export const patienceMs = 5000
/** Peer exchange messages that are read from one peer, at most. */
const exchangesMax = 20

/** The downloading side of one connection. Each piece comes from one peer, so it is known who sent a wrong one. */
export class LeecherPeer implements PeerHandler {
  connection!: PeerConnection
  /** The peer's handshake came, for this torrent. */
  isGreeted = false
  /** It sent a block of the torrent. */
  isUseful = false
  /** When it last sent one; until then, when it was tried. */
  sentMs: number
  #has: Uint8Array
  #fast = false
  #isChoked = true
  #exchanges = 0
  #requested = 0
  #spurred = 0
  /** The start of open requests without a pause, and the bytes that came since then. */
  #busyMs = 0
  #busyBytes = 0
  readonly #pace: SenderPace
  readonly #intakes = new Map<number, IncomingPiece>()

  constructor(
    private readonly parts: DownloadParts,
    readonly address: PeerAddress,
    private readonly infohash: Buffer,
  ) {
    this.#has = new Uint8Array(parts.store.torrent.pieces)
    this.sentMs = parts.clock.monotonic()
    this.#pace = new SenderPace({ stallMs: silentMs, bytesPerSecondMin }, parts.clock)
  }

  /** It would send blocks, and has no open request. */
  get isIdle(): boolean {
    return this.isGreeted && !this.#isChoked && this.#requested === 0 && !this.connection.isOver
  }

  /**
   * Milliseconds until the requested blocks are here, at the rate since the first request. 0 where that was less than
   * `patienceMs` ago, because a rate means nothing then.
   */
  leftMs(now: number): number {
    const ms = now - this.#busyMs
    return this.#requested === 0 || ms < patienceMs
      ? 0
      : (this.#requested * blockBytes * ms) / this.#busyBytes
  }

  /** The connection is open; this side sends its handshake first. */
  begin(): void {
    this.connection.send(encodeHandshake(this.infohash, this.parts.peerId))
  }

  onHandshake({ infohash, peerId, extensions, fast }: Handshake): ConnectionEnd | undefined {
    const { torrent } = this.parts.store
    // A hybrid peer may answer with the other version's hash.
    const same = infohash.equals(torrent.infohashV1) || infohash.equals(torrent.infohashV2.subarray(0, 20))
    if (!same) return 'unknown'
    if (peerId.equals(this.parts.peerId)) return 'done'
    this.isGreeted = true
    this.#fast = fast
    const words = fast ? [encode.plain('have-none')] : []
    if (extensions) {
      words.push(encodeGreeting({ infoBytes: torrent.info.length, port: 0, uploadOnly: false }))
    }
    this.connection.send(Buffer.concat([...words, encode.plain('interested')]))
    return undefined
  }

  onMessage(message: Message): ConnectionEnd | undefined {
    switch (message.kind) {
      case 'piece':
        return this.#block(message.piece, message.begin, message.bytes)
      case 'unchoke':
        this.#isChoked = false
        break
      case 'choke':
        this.#isChoked = true
        this.#drop()
        return undefined
      case 'reject':
        return this.#rejected(message)
      case 'have-all':
        this.#has.fill(1)
        break
      case 'have':
        if (message.piece >= this.#has.length) return 'garbage'
        this.#has[message.piece] = 1
        if (this.parts.store.has(message.piece)) return undefined
        break
      case 'bitfield':
        if (!this.#readBits(message.bits)) return 'garbage'
        break
      case 'extended':
        return this.#extended(message.id, message.payload)
      default:
        return undefined
    }
    this.#spur()
    return undefined
  }

  /** Asks now, where that was not done too often since the last tick; a flood of messages waits for the next one. */
  #spur(): void {
    this.#spurred += 1
    if (this.#spurred <= spurredMax) this.ask()
  }

  onClose(reason: ConnectionEnd): void {
    this.#drop()
    this.parts.onPeerClosed(this, reason)
  }

  /** Requests blocks, as many as may be on their way. */
  ask(): void {
    const { store, clock } = this.parts
    // Another peer was faster.
    for (const intake of [...this.#intakes.values()]) if (store.has(intake.piece)) this.#forget(intake)
    while (!this.#isChoked && this.#requested < requestedMax && !this.connection.isOver) {
      const intake = store.start(
        (piece) => this.#has[piece] === 1 && !this.#intakes.has(piece),
        clock.monotonic(),
        patienceMs,
      )
      if (intake === undefined) return
      this.#pace.wait()
      if (this.#requested === 0) [this.#busyMs, this.#busyBytes] = [clock.monotonic(), 0]
      this.#intakes.set(intake.piece, intake)
      this.#requested += intake.blocks
      this.connection.send(Buffer.concat(blocksOf(intake).map((block) => encode.request(block))))
    }
  }

  /** Checks the deadlines, and requests blocks again where that is due. */
  tick(now: number): void {
    this.connection.tick(now)
    if (this.connection.isOver) return
    this.#spurred = 0
    if (this.#requested > 0 && this.#pace.leftMs <= 0) this.connection.end('stalled')
    else this.ask()
  }

  #block(piece: number, begin: number, bytes: Buffer): ConnectionEnd | undefined {
    const intake = this.#intakes.get(piece)
    // A block that was given up may still come: after a choke, or when a piece was taken from this peer.
    if (intake === undefined) return undefined
    if (!this.parts.store.take(intake, begin, bytes)) return 'garbage'
    this.#requested -= 1
    this.#busyBytes += bytes.length
    this.sentMs = this.parts.clock.monotonic()
    this.#pace.came(bytes.length)
    if (this.#requested > 0) this.#pace.wait()
    this.isUseful = true
    this.parts.received(bytes.length)
    if (intake.missing === 0) {
      this.#intakes.delete(piece)
      void this.parts.store.finish(intake).then(
        (isRight) => (isRight ? this.parts.moved() : this.connection.end('forged')),
        (error: Error) => this.parts.failed(error),
      )
    }
    this.ask()
    return undefined
  }

  #rejected({ piece }: BlockSpan): ConnectionEnd | undefined {
    if (!this.#fast) return 'garbage'
    const intake = this.#intakes.get(piece)
    if (intake === undefined) return undefined
    // A peer rejects after a choke, or because it does not have the piece: its other blocks will not come either.
    this.#forget(intake)
    if (!this.#isChoked) this.#has[piece] = 0
    // Other peers may take the piece at their next tick.
    this.#spur()
    return undefined
  }

  #extended(id: number, payload: Buffer): ConnectionEnd | undefined {
    if (id === 0) return decodeGreeting(payload) === undefined ? 'garbage' : undefined
    if (id !== ownIds.pex) return undefined
    this.#exchanges += 1
    if (this.#exchanges <= exchangesMax)
      this.parts.addPeers(decodeExchange(payload), `peer ${this.address.host}`)
    return undefined
  }

  #readBits(bits: Buffer): boolean {
    if (bits.length !== Math.ceil(this.#has.length / 8)) return false
    for (let piece = 0; piece < this.#has.length; piece += 1) {
      this.#has[piece] = (bits[piece >> 3]! >> (7 - (piece & 7))) & 1
    }
    return true
  }

  #drop(): void {
    for (const intake of this.#intakes.values()) this.#forget(intake)
  }

  #forget(intake: IncomingPiece): void {
    this.#intakes.delete(intake.piece)
    this.#requested -= intake.missing
    if (this.#requested === 0) this.#pace.came(0)
    this.parts.store.abandon(intake)
  }
}

function blocksOf({ piece, blocks, bytes }: IncomingPiece): BlockSpan[] {
  return Array.from({ length: blocks }, (_, index) => {
    const begin = index * blockBytes
    return { piece, begin, length: Math.min(blockBytes, bytes.length - begin) }
  })
}
