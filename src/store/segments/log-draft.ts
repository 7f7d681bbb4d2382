import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { diskRefusal } from '../disk-error.js'
import type { LogFile, LogPlace } from './log-file.js'
import { HeldPieces, type PieceMemory } from './piece-memory.js'
import {
  headOfRecordBytes,
  type RecordDigest,
  splitOf,
  sumOfMeta,
  writeRecordHead,
} from './segment-record.js'

/** What a draft needs of its log. */
export interface DraftHome {
  readonly sharedMaxBytes: number
  readonly memory: PieceMemory
  /** Bytes by which the file of one item grows at once: less where the disk has little room. */
  growBytes(): number
  append(payload: readonly Uint8Array[], digest: RecordDigest, meta?: Uint8Array): LogPlace | Refusal
  flushed(place: LogPlace, until?: Promise<unknown>): Promise<true | Refusal>
  /** What was appended is not accepted: its flush failed. */
  withdraw(place: LogPlace, metaBytes: number): void
  /** A file for one item, with room for its beginning. */
  create(): LogFile | Refusal
  /** The file holds one whole item now. */
  adopt(file: LogFile): void
  drop(file: LogFile): Promise<void>
}

/** A meta has a bound because the scan holds it in memory. */
export const metaMaxBytes = 61_440

/** Where the payload begins in a file of its own: behind the header and all the room that a meta may need, at a page. */
const payloadAt = 65_536

/** Room that a file for one item gets first: for its beginning. */
export const growMinBytes = 1_048_576

/** Bytes that may wait for the disk while more come in. */
const behindMaxBytes = 64 * 1024 * 1024

/**
 * An item on its way into the log. What is small stays in memory until it is whole, and is appended; the rest gets a file of its
 * own. `finish` or `discard` is called once, and ends it.
 */
export class LogDraft {
  readonly #held: HeldPieces
  #file: LogFile | undefined
  #sizeBytes = 0
  #roomEnd = 0
  #failure: Refusal | undefined
  #flushing: Promise<boolean> | undefined
  #flushedAt = 0

  constructor(private readonly home: DraftHome) {
    this.#held = new HeldPieces(home.memory)
  }

  get sizeBytes(): number {
    return this.#sizeBytes
  }

  /** What waits in memory. */
  get memoryBytes(): number {
    return this.#held.memoryBytes
  }

  /**
   * Takes a piece; it may be used again on return. A promise: wait for it before the next one, the disk is behind. Undefined,
   * or a promise of it: go on. A refusal: the disk is full or fails, and all that is left to do is `discard`.
   */
  write(piece: Uint8Array): undefined | Refusal | Promise<undefined | Refusal> {
    if (this.#failure !== undefined) return this.#failure
    if (this.#file === undefined && this.#sizeBytes + piece.length <= this.home.sharedMaxBytes) {
      this.#held.add(piece)
      this.#sizeBytes += piece.length
      return undefined
    }
    this.#failure = this.#spill() ?? this.#put(piece)
    if (this.#failure !== undefined) return this.#failure
    return this.#sizeBytes - this.#flushedAt >= behindMaxBytes ? this.#keepUp() : undefined
  }

  /**
   * Nothing waits in memory afterwards: it is in a file of its own, and so is `behind`, which came after it, however far the disk
   * is behind. A refusal as of `write`.
   */
  spill(behind: Uint8Array): Refusal | undefined {
    this.#failure ??= this.#spill() ?? (behind.length === 0 ? undefined : this.#put(behind))
    if (this.#failure !== undefined) this.#held.release(() => undefined)
    return this.#failure
  }

  /** What was held in memory goes into a file of its own. */
  #spill(): Refusal | undefined {
    if (this.#file !== undefined) return undefined
    const made = this.home.create()
    if (isRefusal(made)) return made
    this.#file = made
    this.#roomEnd = made.sizeBytes
    this.#sizeBytes = 0
    return this.#held.release((pieces) => {
      for (const piece of pieces) {
        const failed = this.#put(piece)
        if (failed !== undefined) return failed
      }
      return undefined
    })
  }

  #put(piece: Uint8Array): Refusal | undefined {
    const file = this.#file as LogFile
    const at = payloadAt + this.#sizeBytes
    try {
      while (at + piece.length > this.#roomEnd) {
        // As much as came, so that many that have only begun take no room from others.
        const more = Math.min(this.home.growBytes(), Math.max(growMinBytes, this.#sizeBytes))
        const roomEnd = this.#roomEnd + more
        file.resize(roomEnd)
        this.#roomEnd = roomEnd
      }
      file.write(piece, at)
    } catch (error) {
      return diskRefusal(error)
    }
    this.#sizeBytes += piece.length
    file.end = at + piece.length
    return undefined
  }

  /** One flush runs while more is written; who is further behind waits for it. */
  async #keepUp(): Promise<undefined | Refusal> {
    const before = this.#flushing
    if (before !== undefined && !(await before)) return this.#fail()
    this.#flushedAt = this.#sizeBytes
    const file = this.#file as LogFile
    this.#flushing = file.flushed(file.end)
    return undefined
  }

  #fail(): Refusal {
    this.#failure = diskRefusal(this.#file?.failure)
    return this.#failure
  }

  /**
   * Makes the draft an item: durable when it resolves. `digest`: of all bytes. A refusal: the disk is full or fails, and nothing
   * is kept. Never rejects. `until`: nobody waits for it before this resolves (`LogFile.flushed`).
   */
  async finish(
    digest: RecordDigest,
    meta: Uint8Array,
    until?: Promise<unknown>,
  ): Promise<LogPlace | Refusal> {
    if (meta.length > metaMaxBytes) throw new RangeError(`${meta.length} bytes of meta are too many`)
    const file = this.#file
    if (this.#failure !== undefined) return this.#failure
    if (file === undefined) {
      const place = this.#held.release((pieces) => this.home.append(pieces, digest, meta))
      if (isRefusal(place)) return place
      const durable = await this.home.flushed(place, until)
      if (!isRefusal(durable)) return place
      this.home.withdraw(place, meta.length)
      return durable
    }
    const head = Buffer.alloc(headOfRecordBytes)
    const lengths = {
      payloadBytes: this.#sizeBytes,
      roomBytes: payloadAt - headOfRecordBytes,
      metaBytes: meta.length,
    }
    writeRecordHead(head, {
      kind: 'alone',
      ...lengths,
      metaSum: sumOfMeta(meta),
      file: file.number,
      ...splitOf(digest),
    })
    try {
      file.resize(file.end)
      // The header is written when all behind it is durable: where there is one, the item is whole.
      if (!(await file.flushed(file.end))) return await this.#lose()
      file.write(Buffer.concat([head, meta]), 0)
      file.touch()
      if (!(await file.flushed(file.end))) return await this.#lose()
    } catch (error) {
      await this.home.drop(file)
      this.#failure = diskRefusal(error)
      return this.#failure
    }
    this.home.adopt(file)
    return { file: file.number, offset: payloadAt, sizeBytes: this.#sizeBytes }
  }

  async #lose(): Promise<Refusal> {
    const file = this.#file as LogFile
    const failure = this.#fail()
    await this.home.drop(file)
    return failure
  }

  /** Gives everything back. Never rejects: what the disk does not remove goes at the next start. */
  async discard(): Promise<void> {
    this.#held.release(() => undefined)
    this.#failure ??= refuse('busy', 'self', 'the item was discarded')
    if (this.#file !== undefined) await this.home.drop(this.#file)
  }
}
