import type { Clock } from '../actor/clock.js'
import { BlockSender, type BlockSenderParts, blockMaxBytes } from './block-sender.js'
import type { PeerAddress } from './compact-peers.js'
import {
  answerMetadata,
  decodeGreeting,
  encodeExchange,
  encodeGreeting,
  ownIds,
  requestsMax,
} from './extension.js'
import type { HashAnswers } from './hash-answer.js'
import type { ConnectionEnd, PeerConnection, PeerHandler } from './peer-connection.js'
import { placeBlock, type Torrent } from './torrent.js'
import {
  type BlockSpan,
  bitfield,
  encode,
  encodeHandshake,
  type Handshake,
  type HashSpan,
  type Message,
} from './wire.js'

/** A torrent that is seeded. */
export interface Seeded {
  readonly torrent: Torrent
  readonly hashes: HashAnswers
  /** Where a file of it lies. */
  path(name: string): string
  /** Pieces that are here; absent: all of them. A piece that was here once stays here. */
  has?(piece: number): boolean
}

/** What a peer needs of the seeder that it belongs to. */
export interface SeederParts extends BlockSenderParts {
  readonly clock: Clock
  readonly peerId: Buffer
  /** Where this side listens; 0: nowhere. */
  readonly port: number
  /** The bytes of the day are used up. */
  readonly isSpent: boolean
  find(infohash: Buffer): Seeded | undefined
  /** True where this peer may request blocks: it holds an upload slot from then on. */
  admit(peer: SeederPeer): boolean
  release(peer: SeederPeer): void
  onPeerClosed(peer: SeederPeer, reason: ConnectionEnd): void
}

/**
 * Requests refused on one connection before it is closed. A peer that keeps to the limit in our handshake never
 * reaches it.
 */
const refusedMax = 4096
/** Peers in one message of peer exchange (BEP 11). */
const exchangedMax = 50

/** The seeding side of one connection: sends the requested blocks, in order, as fast as the leecher takes them. */
export class SeederPeer implements PeerHandler {
  connection!: PeerConnection
  seeded: Seeded | undefined
  isInterested = false
  isUnchoked = false
  /** When it was unchoked last. */
  unchokedMs = 0
  readonly cameMs: number
  /** When it was unchoked for the first time; undefined: never. */
  servedMs: number | undefined
  /** That it was sent: blocks, and answers to other requests. */
  takenBytes = 0
  listens: PeerAddress | undefined
  #fast = false
  #metadataId = 0
  #exchangeId = 0
  #refused = 0
  #sender: BlockSender | undefined
  readonly #sentPeers = new Set<string>()
  /** 1: the peer knows that this piece is here. Undefined: it knows that all are. */
  #announcedPieces: Uint8Array | undefined

  constructor(
    private readonly parts: SeederParts,
    readonly host: string,
    /** The source that it is counted under for limits. */
    readonly source: string,
  ) {
    this.cameMs = parts.clock.monotonic()
  }

  /** Bytes that it took in each millisecond since it came. */
  takenRate(nowMs: number): number {
    return this.takenBytes / Math.max(1, nowMs - this.cameMs)
  }

  onHandshake({ infohash, peerId, fast, extensions, v2 }: Handshake): ConnectionEnd | undefined {
    const seeded = this.parts.find(infohash)
    if (seeded === undefined) return 'unknown'
    // We have connected to ourselves, by our own announce.
    if (peerId.equals(this.parts.peerId)) return 'done'
    this.seeded = seeded
    const onSent = (bytes: number): void => {
      this.takenBytes += bytes
    }
    this.#sender = new BlockSender(this.parts, this.connection, seeded, onSent)
    this.#fast = fast
    const { torrent } = seeded
    // A peer that knows version 2 is answered with the infohash of version 2 (BEP 52). Hybrid peers found us under both hashes
    // and expect it.
    const answer = v2 ? torrent.infohashV2.subarray(0, 20) : infohash
    const words = [encodeHandshake(answer, this.parts.peerId)]
    const isAll = seeded.has === undefined
    if (extensions) {
      words.push(encodeGreeting({ infoBytes: torrent.info.length, port: this.parts.port, uploadOnly: isAll }))
    }
    if (!isAll) this.#announcedPieces = new Uint8Array(torrent.pieces)
    words.push(
      fast && isAll
        ? encode.plain('have-all')
        : encode.bitfield(bitfield(torrent.pieces, this.#news(seeded))),
    )
    this.connection.send(Buffer.concat(words))
    return undefined
  }

  onMessage(message: Message): ConnectionEnd | undefined {
    if (this.seeded === undefined) return 'garbage'
    switch (message.kind) {
      case 'interested':
        this.isInterested = true
        if (!this.isUnchoked && this.parts.admit(this)) this.unchoke()
        return undefined
      case 'not-interested':
        this.isInterested = false
        if (this.isUnchoked) this.choke()
        this.parts.release(this)
        return undefined
      case 'request':
        return this.#onRequest(message, this.seeded)
      case 'cancel':
        this.#sender?.cancel(message)
        return undefined
      case 'extended':
        return this.#extended(message.id, message.payload, this.seeded)
      case 'hash-request':
        this.#onHashRequest(message, this.seeded)
        return undefined
      // This side requests nothing, so an answer is an error of the peer.
      case 'piece':
      case 'hashes':
        return 'garbage'
      default:
        return undefined
    }
  }

  onClose(reason: ConnectionEnd): void {
    this.#sender?.close()
    this.parts.release(this)
    this.parts.onPeerClosed(this, reason)
  }

  unchoke(): void {
    this.isUnchoked = true
    this.unchokedMs = this.parts.clock.monotonic()
    this.servedMs ??= this.unchokedMs
    this.connection.send(encode.plain('unchoke'))
  }

  choke(): void {
    this.isUnchoked = false
    const words = [encode.plain('choke')]
    // With the fast extension every request must be answered, if only by a reject.
    const dropped = this.#sender?.clear() ?? []
    if (this.#fast) words.push(...dropped.map((block) => encode.reject(block)))
    this.connection.send(Buffer.concat(words))
  }

  /** Announces to the peer the pieces that came in since the last time. */
  sendNews(): void {
    if (
      this.#announcedPieces === undefined ||
      this.seeded === undefined ||
      this.connection.unsentBytes > 64 * 1024
    )
      return
    const news = this.#news(this.seeded)
    if (news.length > 0) this.connection.send(Buffer.concat(news.map((piece) => encode.have(piece))))
  }

  /** Pieces that are here and that the peer does not know of, counted as announced from now on. */
  #news({ torrent, has }: Seeded): number[] {
    const announced = this.#announcedPieces
    const news: number[] = []
    for (let piece = 0; piece < torrent.pieces; piece += 1) {
      if (announced?.[piece] === 1 || has?.(piece) === false) continue
      if (announced !== undefined) announced[piece] = 1
      news.push(piece)
    }
    return news
  }

  /** Sends the peer the addresses of other peers of the torrent that were not sent before. */
  exchange(peers: readonly PeerAddress[]): void {
    if (this.#exchangeId === 0 || this.connection.isOver) return
    const fresh = peers.filter((peer) => peer !== this.listens && !this.#sentPeers.has(peerKey(peer)))
    const some = fresh.slice(0, exchangedMax)
    if (some.length === 0 || this.#sentPeers.size > 1000) return
    for (const peer of some) this.#sentPeers.add(peerKey(peer))
    this.connection.send(encodeExchange(this.#exchangeId, some))
  }

  #onRequest(block: BlockSpan, { torrent }: Seeded): ConnectionEnd | undefined {
    const sender = this.#sender
    const place = placeBlock(torrent, block.piece, block.begin, block.length)
    if (place === undefined || block.length > blockMaxBytes) return 'garbage'
    const isHere = this.#announcedPieces === undefined || this.#announcedPieces[block.piece] === 1
    if (sender === undefined || !isHere || !this.isUnchoked || sender.waiting >= requestsMax) {
      this.#refused += 1
      if (this.#refused > refusedMax) return 'flood'
      if (this.#fast) this.connection.send(encode.reject(block))
      return undefined
    }
    sender.send({ piece: block.piece, begin: block.begin, length: block.length })
    return undefined
  }

  #onHashRequest(span: HashSpan, { hashes }: Seeded): void {
    const found = this.#mayAnswer ? hashes.answer(span) : undefined
    if (found === undefined) this.connection.send(encode.hashReject(span))
    else this.#sender?.sendSmall(encode.hashes(span, found))
  }

  /**
   * Not while the peer does not read, since answers would fill the memory; nor while its answers wait for their turn, or the
   * bytes of the day are used up.
   */
  get #mayAnswer(): boolean {
    const isReading = this.connection.unsentBytes < 64 * 1024
    return isReading && this.#sender?.hasRoom === true && !this.parts.isSpent
  }

  #extended(id: number, payload: Buffer, { torrent }: Seeded): ConnectionEnd | undefined {
    if (id === 0) {
      const greeting = decodeGreeting(payload)
      if (greeting === undefined) return 'garbage'
      this.#metadataId = greeting.metadata
      this.#exchangeId = greeting.pex
      this.listens = greeting.port === 0 ? undefined : { host: this.host, port: greeting.port }
    } else if (id === ownIds.metadata && this.#metadataId !== 0) {
      const { isGiven, message } = answerMetadata(payload, torrent.info, this.#metadataId, this.#mayAnswer)
      if (isGiven) this.#sender?.sendSmall(message)
      else if (message.length > 0) this.connection.send(message)
    }
    return undefined
  }
}

function peerKey({ host, port }: PeerAddress): string {
  return `${host} ${port}`
}
