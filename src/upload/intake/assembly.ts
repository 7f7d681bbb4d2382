import { type FileHandle, open } from 'node:fs/promises'
import type { ItemHeader } from '../../format/item.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import { codeOf } from '../../store/blobs.js'
import { diskRefusal } from '../../store/disk-error.js'
import {
  fixedAnswers,
  refusalAnswer,
  textAnswer,
  tooLarge,
  type UploadAnswer,
  unreadable,
} from '../requests/upload-answers.js'
import type { Uploader } from '../requests/uploader.js'
import type { AcceptTerms } from './accept-terms.js'
import { IntakeMemory } from './intake-memory.js'
import { ItemReader, type ReadItem } from './item-reader.js'
import { type SingleUploadParts, tooManyUploads } from './single-upload.js'
import { Spool } from './spool.js'

/** Bytes of an item: the path of a file; what is in memory; what comes from elsewhere. */
export type ItemPiece = string | Uint8Array | (() => AsyncIterable<Uint8Array | Refusal>)

const pieceBytes = 256 * 1024

/** Nothing is wrong with the item: it is tried again, with a new list. */
const changedPieces = textAnswer(503, 'Parts changed while they were read', '\r\nRetry-After: 2')

/** When an item may be read, where many are. */
export interface ReadingTurns {
  enter(): Promise<void>
  /** It waits for others. */
  leave(): void
  /** Between two pieces: others have their turns. */
  pass(): Promise<void>
}

/** How an item that is read piece by piece is accepted, as `Assembly.run` describes. */
export interface AssemblyTerms extends AcceptTerms {
  /** Bytes of all pieces together, as they were listed and paid for. */
  readonly sizeBytes?: number
  readonly turn?: ReadingTurns
}

/** Makes one item of parts that lie one behind the other, checked as if it had come in one request. */
export class Assembly {
  #reader: ItemReader
  readonly #spool: Spool
  #onRoom: () => void = () => undefined
  #isAdmitted = false
  #memory: IntakeMemory | undefined
  #turn: ReadingTurns | undefined
  #sizeBytes: number | undefined
  /** Checks whether an item with this header could be paid for. */
  #foresee: ((header: ItemHeader) => Promise<UploadAnswer | undefined>) | undefined

  constructor(private readonly parts: SingleUploadParts) {
    this.#spool = new Spool(parts.itemLog, () => this.#onRoom())
    this.#reader = new ItemReader(false, parts.blockedOwners)
  }

  /**
   * Once. Of files, of bytes, and of what comes from elsewhere. `onRead`: all was read, and is being verified. `sizeBytes`: it
   * is not read to its end if nobody pays for so much, and is no item if it has another size. `turn`: held while it is read, and
   * not while it waits for others. Nothing was charged where the answer is no receipt. Never rejects but for bugs.
   */
  async run(
    pieces: readonly ItemPiece[],
    uploader: Uploader,
    onRead: () => void,
    terms: AssemblyTerms,
  ): Promise<UploadAnswer> {
    this.#turn = terms.turn
    this.#reader = new ItemReader(terms.digest !== undefined, this.parts.blockedOwners)
    const { sizeBytes, charge, purchase } = terms
    this.#sizeBytes = sizeBytes
    if (sizeBytes !== undefined && charge === undefined && purchase === undefined)
      this.#foresee = (header) => this.parts.intake.foresee(header, sizeBytes, uploader)
    const memory = new IntakeMemory({
      memory: this.parts.memory,
      client: () => uploader.address ?? '',
      spool: this.#spool,
      move: () => this.#spool.spill(),
    })
    this.#memory = memory
    try {
      await this.#turn?.enter()
      const item = await this.#read(pieces, onRead)
      this.#turn?.leave()
      if (!('status' in item)) return await this.parts.intake.take(item, this.#spool, uploader, terms)
      // Whoever was charged for it before its bytes were here has nothing of it.
      await charge?.refund()
      return item
    } finally {
      memory.leave()
      await this.#spool.drop()
    }
  }

  /** Reads all of it. An answer: it is no item, or is not taken. */
  async #read(pieces: readonly ItemPiece[], onRead: () => void): Promise<ReadItem | UploadAnswer> {
    const noRoom = this.parts.noRoomFor()
    if (noRoom !== undefined) return noRoom
    for (const piece of pieces) {
      const failed = await this.#source(piece)
      if (failed !== undefined) return failed
    }
    if (this.#sizeBytes !== undefined && this.#reader.sizeBytes !== this.#sizeBytes) return changedPieces
    onRead()
    this.#memory?.pin()
    const item = this.#reader.finish()
    return isRefusal(item) ? unreadable(item) : item
  }

  async #source(source: ItemPiece): Promise<UploadAnswer | undefined> {
    if (typeof source === 'string') return this.#file(source)
    if (typeof source !== 'function') return this.#piece(source)
    for await (const piece of source()) {
      // Nothing is wrong with the item: it is tried again.
      const failed = isRefusal(piece)
        ? textAnswer(503, piece.message, '\r\nRetry-After: 2')
        : await this.#piece(piece)
      if (failed !== undefined) return failed
    }
    return undefined
  }

  async #file(path: string): Promise<UploadAnswer | undefined> {
    let handle: FileHandle | undefined
    const buffer = Buffer.allocUnsafeSlow(pieceBytes)
    try {
      handle = await open(path, 'r')
      for (;;) {
        const { bytesRead } = await handle.read(buffer, 0, pieceBytes)
        if (bytesRead === 0) return undefined
        const failed = await this.#piece(buffer.subarray(0, bytesRead))
        if (failed !== undefined) return failed
      }
    } catch (error) {
      if (codeOf(error) === undefined) throw error
      return refusalAnswer(diskRefusal(error))
    } finally {
      await handle?.close()
    }
  }

  async #piece(bytes: Uint8Array): Promise<UploadAnswer | undefined> {
    const { noRoomFor, itemMaxBytes } = this.parts
    const noRoom = noRoomFor()
    if (noRoom !== undefined) return noRoom
    const refusal = this.#reader.push(bytes)
    if (refusal !== undefined) return unreadable(refusal)
    if (this.#reader.sizeBytes > itemMaxBytes) return tooLarge(itemMaxBytes)
    if (this.#sizeBytes !== undefined && this.#reader.sizeBytes > this.#sizeBytes) return changedPieces
    if (this.#reader.isBlocked) return fixedAnswers.forbidden
    if (!this.#isAdmitted && this.#reader.header !== undefined) {
      this.#isAdmitted = true
      const unpaid = await this.#foreseen(this.#reader.header)
      if (unpaid !== undefined) return unpaid
    }
    if (this.#spool.write(bytes) === 'behind') {
      await new Promise<void>((resolve) => {
        this.#onRoom = resolve
      })
    }
    if (this.#spool.refusal !== undefined) return refusalAnswer(this.#spool.refusal)
    const isHeld = this.#memory?.update()
    if (this.#spool.refusal !== undefined) return refusalAnswer(this.#spool.refusal)
    if (isHeld === false) return tooManyUploads
    await this.#turn?.pass()
    return undefined
  }

  /** The payment service is waited for without a turn. */
  async #foreseen(header: ItemHeader): Promise<UploadAnswer | undefined> {
    if (this.#foresee === undefined) return undefined
    this.#turn?.leave()
    const unpaid = await this.#foresee(header)
    await this.#turn?.enter()
    return unpaid
  }
}
