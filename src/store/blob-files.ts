import { SmallFacts, smallReads, unread } from '../../native/mapped/mapped.js'
import { type FileState, isSameFile } from './file-stamp.js'
import type { FileContent, MappedFiles } from './mapped.js'
import { Ticks } from './residence.js'

/** Files up to this size are read and not mapped: a copy of them costs less than a mapping. */
const smallMaxBytes = 64 * 1024

/** Where no descriptor is left, one file in so many pushes another one out: opening each in turn costs more than it saves. */
const patience = 16

const buffer = Buffer.allocUnsafeSlow(smallMaxBytes)
const facts = new SmallFacts()

/** Whose bytes are in the buffer. */
let latest: SmallFile | undefined

/** A small file, read whole into the one buffer of this thread. Where others have used that meanwhile it is read once more. */
class SmallFile implements FileContent {
  readonly #path: string
  readonly #files: MappedFiles
  /** Where the bytes had left memory: the same file, mapped. */
  #mapped: FileContent | undefined

  /** Its bytes are in the buffer. */
  constructor(
    path: string,
    readonly sizeBytes: number,
    readonly stamp: FileState,
    files: MappedFiles,
  ) {
    this.#path = path
    this.#files = files
    latest = this
  }

  read(start: number, end: number): Uint8Array | undefined {
    if (!(start >= 0 && start < end && end <= this.sizeBytes))
      throw new RangeError(`[${start}, ${end}) is not within ${this.sizeBytes} bytes`)
    if (latest === this) return buffer.subarray(start, end)
    if (this.#mapped !== undefined) return this.#mapped.read(start, end)
    latest = undefined
    // By its path: a descriptor may be another file's by now.
    const got = smallReads?.read(this.#path, buffer, facts)
    if (got === unread.elsewhere) return undefined
    if (got !== this.sizeBytes || !isSameFile(this.stamp, facts))
      throw new Error(`${this.#path} was replaced while it was read`)
    latest = this
    return buffer.subarray(start, end)
  }

  async ready(start: number, end: number): Promise<boolean> {
    if (this.#mapped === undefined) {
      const mapped = this.#files.open(this.#path)
      if (mapped === undefined) return false
      if (!isSameFile(this.stamp, mapped.stamp) || mapped.sizeBytes !== this.sizeBytes) {
        mapped.close()
        return false
      }
      this.#mapped = mapped
    }
    return this.#mapped.ready(start, end)
  }

  close(): void {
    this.#mapped?.close()
    if (latest === this) latest = undefined
  }
}

/** A small file that is kept open. */
interface Held {
  readonly descriptor: number
  readonly sizeBytes: number
  readonly stamp: FileState
  believedUntil: number
  isUsed: boolean
}

/**
 * Blobs as content. Large ones are mapped and stay mapped. Small ones are read: popular ones through descriptors that stay open,
 * others are opened and closed each time. So a million of them take no memory, mapping or descriptor.
 */
export class BlobFiles {
  readonly #held = new Map<string, Held>()
  #waited = 0

  /** `heldMax`: descriptors for small files. */
  constructor(
    private readonly files: MappedFiles,
    private readonly heldMax: number,
  ) {}

  /**
   * The file at `path`, or undefined where there is none. Throws on any other failure of the disk. `sizeBytes`: what it is
   * thought to be. `often`: it was requested a few times lately.
   */
  readonly open = (path: string, sizeBytes: number, often: boolean): FileContent | undefined => {
    if (sizeBytes > smallMaxBytes || smallReads === undefined) return this.files.open(path)
    const held = often ? this.#hold(path) : undefined
    latest = undefined
    const got =
      held === undefined ? this.#read(path) : smallReads.readOpen(held.descriptor, buffer, held.sizeBytes)
    if (got === unread.missing) return undefined
    if (got < 0) return this.files.open(path)
    if (held !== undefined) return new SmallFile(path, got, held.stamp, this.files)
    return new SmallFile(path, got, stampNow(), this.files)
  }

  /** Lets go of every descriptor. */
  close(): void {
    for (const { descriptor } of this.#held.values()) smallReads?.close(descriptor)
    this.#held.clear()
  }

  #read(path: string): number {
    return smallReads?.read(path, buffer, facts) ?? unread.missing
  }

  /** The file at `path` as it is kept open; undefined where there is none. */
  #hold(path: string): Held | undefined {
    const { tick } = this.files
    const held = this.#held.get(path)
    if (held !== undefined) {
      held.isUsed = true
      if (tick < held.believedUntil) return held
      if (
        smallReads?.look(path, facts) === true &&
        facts.sizeBytes === held.sizeBytes &&
        isSameFile(held.stamp, facts)
      ) {
        held.believedUntil = tick + Ticks.lasting
        return held
      }
      this.#drop(path, held)
    }
    if (this.#held.size >= this.heldMax && !this.#isTurn()) return undefined
    const descriptor = smallReads?.open(path, facts) ?? unread.missing
    if (descriptor < 0) return undefined
    const { sizeBytes } = facts
    const fresh = {
      descriptor,
      sizeBytes,
      stamp: stampNow(),
      believedUntil: tick + Ticks.lasting,
      isUsed: false,
    }
    this.#held.set(path, fresh)
    if (this.#held.size > this.heldMax) this.#trim(fresh)
    return fresh
  }

  #isTurn(): boolean {
    this.#waited = (this.#waited + 1) % patience
    return this.#waited === 0
  }

  /** The oldest goes first, but for those that were used since they were last looked at. */
  #trim(newest: Held): void {
    for (const [path, held] of this.#held) {
      if (held === newest) continue
      if (!held.isUsed) {
        this.#drop(path, held)
        return
      }
      held.isUsed = false
      this.#held.delete(path)
      this.#held.set(path, held)
    }
  }

  #drop(path: string, { descriptor }: Held): void {
    this.#held.delete(path)
    smallReads?.close(descriptor)
  }
}

function stampNow(): FileState {
  const { inodeLow, inodeHigh, modifiedLow, modifiedHigh } = facts
  return { inodeLow, inodeHigh, modifiedLow, modifiedHigh }
}
