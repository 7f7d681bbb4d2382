import type { Clock } from '../actor/clock.js'
import { placeBlock, type Torrent } from '../format/torrent.js'
import { takeRun } from './block-run.js'
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
import {
  type Block,
  bitfield,
  encode,
  encodeHandshake,
  type Handshake,
  type HashSpan,
  type Message,
  pieceHeadBytes,
  writePieceHead,
} from './wire.js'
import type { LineEnd, PeerLine, Speaker } from './wire-line.js'

/** A torrent that is given out. */
export interface Seeded {
  readonly torrent: Torrent
  readonly hashes: HashAnswers
  /** Where a file of it lies. */
  path(name: string): string
  /** Pieces that are here; absent: all of them. What was here stays. */
  has?(piece: number): boolean
}

/** What a peer needs of the seeder that it belongs to. */
export interface SeederDesk {
  readonly clock: Clock
  readonly peerId: Buffer
  /** Where this side listens; 0: nowhere. */
  readonly port: number
  find(infohash: Buffer): Seeded | undefined
  /** True while a block may be asked for by this peer: it holds an upload slot from then on. */
  admit(peer: SeederPeer): boolean
  release(peer: SeederPeer): void
  /** Calls back when bytes may be sent. */
  allow(bytes: number, go: () => void): void
  read(path: string, position: number, parts: readonly Uint8Array[]): Promise<boolean>
  /** A buffer for a run of blocks, to be given back. */
  borrow(): Buffer
  giveBack(buffer: Buffer): void
  sent(bytes: number): void
  gone(peer: SeederPeer, reason: LineEnd): void
}

/** Blocks read and sent in one go; two runs of a peer are under way at once, one being read while the other is written. */
const runBlocks = 8
const runsMax = 2
const blockMaxBytes = 16 * 1024
export const runBytes = runBlocks * (blockMaxBytes + pieceHeadBytes)

/** Requests refused on one connection before it ends: no peer that counts its own gets there. */
const refusedMax = 4096
/** Peers told in one exchange (BEP 11). */
const exchangedMax = 50

/** The seeding side of one connection: what a leecher asks for, in order, as fast as it takes it. */
export class SeederPeer implements Speaker {
  line!: PeerLine
  seeded: Seeded | undefined
  isInterested = false
  isUnchoked = false
  /** When it was unchoked last. */
  unchokedMs = 0
  listens: PeerAddress | undefined
  #fast = false
  #metadataId = 0
  #exchangeId = 0
  #refused = 0
  #runs = 0
  #queue: Block[] = []
  readonly #told = new Set<string>()
  /** 1: the peer knows that this piece is here. Undefined: it knows that all are. */
  #toldPieces: Uint8Array | undefined

  constructor(
    private readonly desk: SeederDesk,
    readonly host: string,
    /** Who it counts as. */
    readonly source: string,
  ) {}

  greeted({ infohash, peerId, fast, extensions, v2 }: Handshake): LineEnd | undefined {
    const seeded = this.desk.find(infohash)
    if (seeded === undefined) return 'unknown'
    // Our own announce led back here.
    if (peerId.equals(this.desk.peerId)) return 'done'
    this.seeded = seeded
    this.#fast = fast
    const { torrent } = seeded
    // Who knows version 2 is raised to it (BEP 52). Hybrid peers that were told of us under both hashes expect it: the second
    // word reaches them while the first handshake is on its way.
    const answer = v2 ? torrent.infohashV2.subarray(0, 20) : infohash
    const words = [encodeHandshake(answer, this.desk.peerId)]
    const isAll = seeded.has === undefined
    if (extensions) {
      words.push(encodeGreeting({ infoBytes: torrent.info.length, port: this.desk.port, uploadOnly: isAll }))
    }
    if (!isAll) this.#toldPieces = new Uint8Array(torrent.pieces)
    words.push(
      fast && isAll
        ? encode.plain('have-all')
        : encode.bitfield(bitfield(torrent.pieces, this.#news(seeded))),
    )
    this.line.send(Buffer.concat(words))
    return undefined
  }

  heard(message: Message): LineEnd | undefined {
    if (this.seeded === undefined) return 'garbage'
    switch (message.kind) {
      case 'interested':
        this.isInterested = true
        if (!this.isUnchoked && this.desk.admit(this)) this.unchoke()
        return undefined
      case 'not-interested':
        this.isInterested = false
        if (this.isUnchoked) this.choke()
        this.desk.release(this)
        return undefined
      case 'request':
        return this.#asked(message, this.seeded)
      case 'cancel':
        this.#queue = this.#queue.filter((block) => !isSame(block, message))
        return undefined
      case 'extended':
        return this.#extended(message.id, message.payload, this.seeded)
      case 'hash-request':
        this.#askedHashes(message, this.seeded)
        return undefined
      // A seeder asked for nothing.
      case 'piece':
      case 'hashes':
        return 'garbage'
      default:
        return undefined
    }
  }

  gone(reason: LineEnd): void {
    this.#queue = []
    this.desk.release(this)
    this.desk.gone(this, reason)
  }

  unchoke(): void {
    this.isUnchoked = true
    this.unchokedMs = this.desk.clock.monotonic()
    this.line.send(encode.plain('unchoke'))
  }

  choke(): void {
    this.isUnchoked = false
    const words = [encode.plain('choke')]
    // The fast extension wants every request answered, one way or the other.
    if (this.#fast) words.push(...this.#queue.map((block) => encode.reject(block)))
    this.#queue = []
    this.line.send(Buffer.concat(words))
  }

  /** Tells the peer what has come in since. */
  tellNews(): void {
    if (this.#toldPieces === undefined || this.seeded === undefined || this.line.unsentBytes > 64 * 1024)
      return
    const news = this.#news(this.seeded)
    if (news.length > 0) this.line.send(Buffer.concat(news.map((piece) => encode.have(piece))))
  }

  /** Pieces that are here and that the peer does not know of, counted as told from now on. */
  #news({ torrent, has }: Seeded): number[] {
    const told = this.#toldPieces
    const news: number[] = []
    for (let piece = 0; piece < torrent.pieces; piece += 1) {
      if (told?.[piece] === 1 || has?.(piece) === false) continue
      if (told !== undefined) told[piece] = 1
      news.push(piece)
    }
    return news
  }

  /** Tells the peer about others of the same torrent that it has not heard of here. */
  exchange(peers: readonly PeerAddress[]): void {
    if (this.#exchangeId === 0 || this.line.isOver) return
    const fresh = peers.filter((peer) => peer !== this.listens && !this.#told.has(keyOf(peer)))
    const some = fresh.slice(0, exchangedMax)
    if (some.length === 0 || this.#told.size > 1000) return
    for (const peer of some) this.#told.add(keyOf(peer))
    this.line.send(encodeExchange(this.#exchangeId, some))
  }

  #asked(block: Block, { torrent }: Seeded): LineEnd | undefined {
    const place = placeBlock(torrent, block.piece, block.begin, block.length)
    if (place === undefined || block.length > blockMaxBytes) return 'garbage'
    const isHere = this.#toldPieces === undefined || this.#toldPieces[block.piece] === 1
    if (!isHere || !this.isUnchoked || this.#queue.length >= requestsMax) {
      this.#refused += 1
      if (this.#refused > refusedMax) return 'flood'
      if (this.#fast) this.line.send(encode.reject(block))
      return undefined
    }
    this.#queue.push({ piece: block.piece, begin: block.begin, length: block.length })
    this.#pump()
    return undefined
  }

  #askedHashes(span: HashSpan, { hashes }: Seeded): void {
    // Who asks without reading gets no more than it sent.
    const room = this.line.unsentBytes < 64 * 1024
    const found = room ? hashes.answer(span) : undefined
    this.line.send(found === undefined ? encode.hashReject(span) : encode.hashes(span, found))
  }

  #extended(id: number, payload: Buffer, { torrent }: Seeded): LineEnd | undefined {
    if (id === 0) {
      const greeting = decodeGreeting(payload)
      if (greeting === undefined) return 'garbage'
      this.#metadataId = greeting.metadata
      this.#exchangeId = greeting.pex
      this.listens = greeting.port === 0 ? undefined : { host: this.host, port: greeting.port }
    } else if (id === ownIds.metadata && this.#metadataId !== 0) {
      const room = this.line.unsentBytes < 64 * 1024
      const answer = answerMetadata(payload, torrent.info, this.#metadataId, room)
      if (answer !== undefined) this.line.send(answer)
    }
    return undefined
  }

  #pump(): void {
    const { seeded } = this
    while (seeded !== undefined && this.#runs < runsMax && this.isUnchoked && !this.line.isOver) {
      const blocks = takeRun(this.#queue, seeded.torrent, runBlocks)
      if (blocks.length === 0) return
      this.#runs += 1
      const bytes = blocks.reduce((sum, block) => sum + block.length, 0)
      this.desk.allow(bytes, () => void this.#run(blocks, bytes, seeded))
    }
  }

  async #run(blocks: readonly Block[], bytes: number, seeded: Seeded): Promise<void> {
    if (this.line.isOver) return
    const buffer = this.desk.borrow()
    const done = (): void => {
      this.desk.giveBack(buffer)
      this.#runs -= 1
      this.#pump()
    }
    const filled = await this.#read(blocks, buffer, seeded)
    if (filled === undefined) {
      done()
      this.line.end('done')
      return
    }
    this.line.send(buffer.subarray(0, filled), done)
    this.desk.sent(bytes)
  }

  /** Heads and bytes of blocks, one after the other, the file's part of them by one read. Undefined where reading fails. */
  async #read(
    blocks: readonly Block[],
    buffer: Buffer,
    { torrent, path }: Seeded,
  ): Promise<number | undefined> {
    const parts: Uint8Array[] = []
    let at = 0
    let start: { name: string; position: number } | undefined
    for (const block of blocks) {
      const place = placeBlock(torrent, block.piece, block.begin, block.length)
      if (place === undefined) return undefined
      writePieceHead(buffer, at, block)
      at += pieceHeadBytes
      start ??= { name: place.file.name, position: place.position }
      if (place.bytes > 0) parts.push(buffer.subarray(at, at + place.bytes))
      buffer.fill(0, at + place.bytes, at + block.length)
      at += block.length
    }
    if (start === undefined || parts.length === 0) return at
    return (await this.desk.read(path(start.name), start.position, parts)) ? at : undefined
  }
}

function isSame(one: Block, other: Block): boolean {
  return one.piece === other.piece && one.begin === other.begin && one.length === other.length
}

function keyOf({ host, port }: PeerAddress): string {
  return `${host} ${port}`
}
