import type { PeerConnection } from './peer-connection.js'
import { placeBlock, type Torrent } from './torrent.js'
import { type BlockSpan, pieceHeadBytes, writePieceHead } from './wire.js'

/** What is shared by all peers of a seeder. */
export interface BlockSenderParts {
  /** Calls back when bytes may be sent. The result gives the request up. */
  allow(bytes: number, go: () => void): () => void
  read(path: string, position: number, parts: readonly Uint8Array[]): Promise<boolean>
  /** A buffer of `runBytes`, to be given back. */
  borrow(): Buffer
  giveBack(buffer: Buffer): void
  sent(bytes: number): void
}

/** Blocks read and sent in one go; two runs of a peer are under way at once, one being read while the other is written. */
const runBlocks = 8
const runsMax = 2
export const blockMaxBytes = 16 * 1024
export const runBytes = runBlocks * (blockMaxBytes + pieceHeadBytes)
/** Small answers (hashes, parts of the info dictionary) of one peer that wait for their turn; more are refused. */
const smallMax = 8

/** Sends one peer the blocks that it requests, in order, as fast as it takes them. All that it sends counts for the limits. */
export class BlockSender {
  #runs = 0
  #queue: BlockSpan[] = []
  /** What gives up the requests that wait for their turn. */
  readonly #waits = new Set<() => void>()
  #small = 0

  constructor(
    private readonly parts: BlockSenderParts,
    private readonly connection: PeerConnection,
    private readonly seeded: { readonly torrent: Torrent; path(name: string): string },
    private readonly onSent: (bytes: number) => void,
  ) {}

  /** Blocks in the queue that are not being read yet. */
  get waiting(): number {
    return this.#queue.length
  }

  /** Sends a block that lies in the torrent, of at most `blockMaxBytes`, behind those that wait. */
  send(block: BlockSpan): void {
    this.#queue.push(block)
    this.#pump()
  }

  cancel(block: BlockSpan): void {
    this.#queue = this.#queue.filter((one) => !isSame(one, block))
  }

  /** Whether another small answer has a place. */
  get hasRoom(): boolean {
    return this.#small < smallMax
  }

  /** Sends a small answer, where `hasRoom`. */
  sendSmall(message: Buffer): void {
    this.#small += 1
    this.#await(message.length, () => {
      this.#small -= 1
      this.connection.send(message)
      this.#sent(message.length)
    })
  }

  #sent(bytes: number): void {
    this.onSent(bytes)
    this.parts.sent(bytes)
  }

  /** The connection is over: nothing of it waits any more. */
  close(): void {
    this.#queue = []
    for (const giveUp of this.#waits) giveUp()
    this.#waits.clear()
  }

  /** Removes the blocks that wait from the queue, and returns them. */
  clear(): readonly BlockSpan[] {
    const dropped = this.#queue
    this.#queue = []
    return dropped
  }

  #pump(): void {
    while (this.#runs < runsMax && !this.connection.isOver) {
      const blocks = takeRun(this.#queue, this.seeded.torrent, runBlocks)
      if (blocks.length === 0) return
      this.#runs += 1
      const bytes = blocks.reduce((sum, block) => sum + block.length, 0)
      this.#await(bytes, () => void this.#run(blocks, bytes))
    }
  }

  /** Calls `go` when so many bytes may be sent, unless the connection ends before. */
  #await(bytes: number, go: () => void): void {
    const wait: { isOver: boolean; giveUp: () => void } = { isOver: false, giveUp: () => undefined }
    const giveUp = (): void => wait.giveUp()
    wait.giveUp = this.parts.allow(bytes, () => {
      wait.isOver = true
      this.#waits.delete(giveUp)
      go()
    })
    // It may have been called at once.
    if (!wait.isOver) this.#waits.add(giveUp)
  }

  async #run(blocks: readonly BlockSpan[], bytes: number): Promise<void> {
    if (this.connection.isOver) return
    const buffer = this.parts.borrow()
    const done = (): void => {
      this.parts.giveBack(buffer)
      this.#runs -= 1
      this.#pump()
    }
    const filled = await this.#read(blocks, buffer)
    if (filled === undefined) {
      done()
      this.connection.end('done')
      return
    }
    this.connection.send(buffer.subarray(0, filled), done)
    this.#sent(bytes)
  }

  /**
   * Fills `buffer` with the messages of the blocks (head, then bytes), with one read of the file. Undefined where
   * reading fails.
   */
  async #read(blocks: readonly BlockSpan[], buffer: Buffer): Promise<number | undefined> {
    const { torrent } = this.seeded
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
    return (await this.parts.read(this.seeded.path(start.name), start.position, parts)) ? at : undefined
  }
}

function isSame(one: BlockSpan, other: BlockSpan): boolean {
  return one.piece === other.piece && one.begin === other.begin && one.length === other.length
}

/**
 * Takes blocks from the front of the queue as long as they are adjacent in one file, so that one read is enough for
 * all of them.
 */
export function takeRun(queue: BlockSpan[], torrent: Torrent, blocksMax: number): readonly BlockSpan[] {
  let count = 0
  let next: { file: object; position: number } | undefined
  for (const block of queue) {
    const place = placeBlock(torrent, block.piece, block.begin, block.length)
    const follows = next === undefined || (place?.file === next.file && place.position === next.position)
    if (count === blocksMax || place === undefined || !follows) break
    next = { file: place.file, position: place.position + block.length }
    count += 1
  }
  return queue.splice(0, count)
}
