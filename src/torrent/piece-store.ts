import { hash } from 'node:crypto'
import { constants, type FileHandle, mkdir, open } from 'node:fs/promises'
import { join } from 'node:path'
import { hashPiece, rootOfBlocks } from './hash.js'
import { blockBytes, fileOfPiece, pieceSize, type Torrent, type TorrentFile } from './torrent.js'

/**
 * The files of a torrent while they are downloaded. A piece is written only after its hash was checked. No state is kept
 * beside the files: after a restart they are hashed again, and pieces with the right hash count as present.
 */

/** A piece that is being received from one peer or server. Each block is hashed when it arrives. */
export interface IncomingPiece {
  readonly piece: number
  /** The bytes of the file; padding is not transferred. */
  readonly bytes: Buffer
  readonly blocks: number
  readonly startedMs: number
  /** 32 bytes for each block. */
  readonly digests: Uint8Array
  readonly came: Uint8Array
  missing: number
}

/** The pieces of one torrent on disk: which are there, which are being received, and which is to be received next. */
export class PieceStore {
  /** 1: on disk with the right hash. */
  readonly #have: Uint8Array
  readonly #intakes = new Set<IncomingPiece>()
  #missing: number
  #missingBytes: number
  /** All pieces below this one are present or being received. */
  #from = 0

  /**
   * @param memoryMaxBytes held in pieces that are being received, a quarter of it for HTTP only; a single larger piece is allowed
   */
  constructor(
    readonly torrent: Torrent,
    private readonly folder: string,
    private readonly memoryMaxBytes: number,
  ) {
    this.#have = new Uint8Array(torrent.pieces)
    this.#missing = torrent.pieces
    this.#missingBytes = torrent.files.reduce((sum, file) => sum + file.sizeBytes, 0)
  }

  get isWhole(): boolean {
    return this.#missing === 0
  }

  get missingBytes(): number {
    return this.#missingBytes
  }

  has(piece: number): boolean {
    return this.#have[piece] === 1
  }

  get #heldBytes(): number {
    return [...this.#intakes].reduce((sum, { bytes }) => sum + bytes.length, 0)
  }

  get #peersMaxBytes(): number {
    return this.memoryMaxBytes - (this.memoryMaxBytes >> 2)
  }

  /** Creates the files, and hashes what is in them already. Rejects where reading or writing fails. */
  async prepare(): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 })
    const buffer = Buffer.allocUnsafeSlow(this.torrent.pieceBytes)
    for (const file of this.torrent.files) {
      const path = join(this.folder, file.name)
      const handle = await open(path, constants.O_RDWR | constants.O_CREAT, 0o600)
      try {
        const { size } = await handle.stat()
        await this.#recheck(file, handle, buffer, size)
        await handle.truncate(file.sizeBytes)
      } finally {
        await handle.close()
      }
    }
  }

  /**
   * The next piece for a peer or server that has the pieces for which `offers(piece)` is true. Pieces that are being
   * received from another one come last, and only after `patienceMs`. `isWeb`: it comes over HTTP. Undefined: none now.
   */
  start(
    offers: (piece: number) => boolean,
    now: number,
    patienceMs: number,
    isWeb = false,
  ): IncomingPiece | undefined {
    const under = new Set(Array.from(this.#intakes, ({ piece }) => piece))
    while (this.#have[this.#from] === 1) this.#from += 1
    for (let piece = this.#from; piece < this.torrent.pieces; piece += 1) {
      if (this.#have[piece] === 0 && !under.has(piece) && offers(piece)) return this.#begin(piece, now, isWeb)
    }
    for (const { piece, startedMs } of this.#intakes) {
      if (this.#have[piece] === 1) continue
      const isAlone = [...this.#intakes].filter((other) => other.piece === piece).length === 1
      if (isAlone && now - startedMs > patienceMs && offers(piece)) return this.#begin(piece, now, isWeb)
    }
    return undefined
  }

  #begin(piece: number, now: number, isWeb: boolean): IncomingPiece | undefined {
    const file = fileOfPiece(this.torrent, piece)
    if (file === undefined) return undefined
    const size = pieceSize(this.torrent, file, piece)
    const [held, most] = [this.#heldBytes, isWeb ? this.memoryMaxBytes : this.#peersMaxBytes]
    if (held > 0 && held + size > most) return undefined
    const blocks = Math.ceil(size / blockBytes)
    const intake: IncomingPiece = {
      piece,
      bytes: Buffer.allocUnsafe(size),
      blocks,
      startedMs: now,
      digests: new Uint8Array(blocks * 32),
      came: new Uint8Array(blocks),
      missing: blocks,
    }
    this.#intakes.add(intake)
    return intake
  }

  /** Gives a piece up, so that it can be received from another peer. */
  abandon(intake: IncomingPiece): void {
    this.#intakes.delete(intake)
  }

  /** Takes a block of a piece. False where it was not requested: another size or place, or there already. */
  take(intake: IncomingPiece, begin: number, bytes: Uint8Array): boolean {
    const index = begin / blockBytes
    const wanted = Math.min(blockBytes, intake.bytes.length - begin)
    if (!Number.isInteger(index) || index >= intake.blocks || bytes.length !== wanted) return false
    if (intake.came[index] === 1) return false
    intake.came[index] = 1
    intake.missing -= 1
    intake.bytes.set(bytes, begin)
    intake.digests.set(hash('sha256', bytes, 'buffer'), index * 32)
    return true
  }

  /**
   * Ends a piece whose blocks are all there: writes it where its hash is right. False: the hash is wrong. Rejects
   * where writing fails.
   */
  async finish(intake: IncomingPiece): Promise<boolean> {
    try {
      const { piece, digests, bytes } = intake
      const file = fileOfPiece(this.torrent, piece)
      if (file === undefined || this.#have[piece] === 1) return true
      const root = rootOfBlocks(digests, file.sizeBytes, this.torrent.pieceBytes)
      if (!this.#isRight(file, piece, root)) return false
      await this.#write(file, (piece - file.firstPiece) * this.torrent.pieceBytes, bytes)
      this.#mark(file, piece)
      return true
    } finally {
      // Only now: a piece that is neither present nor being loaded would be requested again meanwhile.
      this.#intakes.delete(intake)
    }
  }

  async #write(file: TorrentFile, position: number, bytes: Buffer): Promise<void> {
    const handle = await open(join(this.folder, file.name), 'r+')
    try {
      // A disk that gets full takes a part, and says so only at the next write.
      for (let at = 0; at < bytes.length; ) {
        const { bytesWritten } = await handle.write(bytes, at, bytes.length - at, position + at)
        at += bytesWritten
      }
    } finally {
      await handle.close()
    }
  }

  async #recheck(file: TorrentFile, handle: FileHandle, buffer: Buffer, size: number): Promise<void> {
    const { pieceBytes } = this.torrent
    for (let piece = file.firstPiece; piece < file.firstPiece + file.pieces; piece += 1) {
      const wanted = pieceSize(this.torrent, file, piece)
      const position = (piece - file.firstPiece) * pieceBytes
      if (position + wanted > size) return
      const { bytesRead } = await handle.read(buffer, 0, wanted, position)
      if (bytesRead !== wanted) return
      const root = hashPiece(buffer.subarray(0, wanted), file.sizeBytes, pieceBytes)
      if (this.#isRight(file, piece, root)) this.#mark(file, piece)
    }
  }

  #isRight(file: TorrentFile, piece: number, root: Uint8Array): boolean {
    const at = (piece - file.firstPiece) * 32
    return Buffer.from(root).equals(file.layer.subarray(at, at + 32))
  }

  #mark(file: TorrentFile, piece: number): void {
    if (this.#have[piece] === 1) return
    this.#have[piece] = 1
    this.#missing -= 1
    this.#missingBytes -= pieceSize(this.torrent, file, piece)
  }
}
