import { openMapped } from '../../../native/mapped/mapped.js'
import type { MappedFile } from '../../../native/mapped/mapped-file.js'
import type { Clock, Timer } from '../../actor/clock.js'
import type { ItemPlace } from '../../catalog/attributes.js'
import type { LmdbCatalog } from '../../catalog/reader.js'
import type { Id } from '../../format/id.js'
import { type Refusal, refuse } from '../../format/refusal.js'
import type { BlobStore } from '../../store/blobs.js'
import { unknownEverywhere } from '../refusals.js'
import { openBlobRoot } from './blob-root.js'
import type { RootBytes } from './root-bytes.js'

/** Files that stay open without a reader. Beyond, the one that was opened first is closed. */
const filesMax = 64

/** So long after it was opened a file is opened anew: what was removed gives its room back, what was replaced is seen. */
const openMs = 5000

/** More at once is not copied on the thread that moves everybody's bytes. */
const nearMaxBytes = 262_144

const pieceBytes = 262_144

interface OpenFile {
  readonly file: MappedFile
  readonly untilMs: number
  readers: number
  isRetired: boolean
}

/** Bundles that lie in files of this machine, each mapped for some seconds: so the next item of one opens no file. */
export class BlobRoots {
  readonly #files = new Map<string, OpenFile>()
  readonly #timer: Timer

  constructor(
    private readonly catalog: LmdbCatalog,
    private readonly store: BlobStore,
    private readonly clock: Clock,
  ) {
    this.#timer = clock.every(openMs, () => this.#sweep())
  }

  /** Opens the payload of `id` where it is on disk; `unknown` where it is not. Throws where the disk refuses. */
  async open(id: Id): Promise<RootBytes | Refusal> {
    const known = this.catalog.attributes(id)
    if (known?.digest === undefined || this.catalog.blobSize(known.digest) === undefined)
      return unknownEverywhere()
    const { path, offset } = this.store.part(known.digest)
    // A small one lies in a segment, whose bytes are compared with their digest first.
    if (offset !== undefined) return openBlobRoot(id, this.catalog, this.store)
    const open = this.#open(path)
    if (open === undefined || open.file.sizeBytes !== known.size) return unknownEverywhere()
    open.readers += 1
    return new MappedRoot(known, open.file, () => this.#leave(open))
  }

  #open(path: string): OpenFile | undefined {
    const known = this.#files.get(path)
    const now = this.clock.monotonic()
    if (known !== undefined && now < known.untilMs) return known
    if (known !== undefined) this.#retire(path, known)
    const file = openMapped(path)
    if (file === undefined) return undefined
    const open = { file, untilMs: now + openMs, readers: 0, isRetired: false }
    this.#files.set(path, open)
    const [first] = this.#files.size > filesMax ? this.#files : []
    if (first !== undefined) this.#retire(...first)
    return open
  }

  #retire(path: string, open: OpenFile): void {
    this.#files.delete(path)
    open.isRetired = true
    if (open.readers === 0) open.file.close()
  }

  #leave(open: OpenFile): void {
    open.readers -= 1
    if (open.isRetired && open.readers === 0) open.file.close()
  }

  #sweep(): void {
    const now = this.clock.monotonic()
    for (const [path, open] of this.#files) if (now >= open.untilMs) this.#retire(path, open)
  }

  /** Readers keep what they have open. */
  close(): void {
    this.#timer.cancel()
    for (const [path, open] of this.#files) this.#retire(path, open)
  }
}

interface KnownRoot {
  readonly id: Id
  readonly digest?: Uint8Array
  readonly verified: boolean
  readonly trusted: boolean
  readonly height?: number
  readonly place?: ItemPlace
}

/** Bytes are copied before anybody looks at them: a file that is cut or fails must not end the program. */
class MappedRoot implements RootBytes {
  readonly id: Id
  readonly digest?: Uint8Array
  readonly sizeBytes: number
  readonly proven: boolean
  readonly trusted: boolean
  readonly height?: number
  readonly outer?: ItemPlace
  #isOpen = true

  constructor(
    { id, digest, verified, trusted, height, place }: KnownRoot,
    private readonly file: MappedFile,
    private readonly leave: () => void,
  ) {
    this.id = id
    this.sizeBytes = file.sizeBytes
    this.proven = verified
    this.trusted = trusted
    if (digest !== undefined) this.digest = digest
    if (height !== undefined) this.height = height
    if (place !== undefined) this.outer = place
  }

  near(start: number, end: number): Uint8Array | undefined {
    if (end > this.sizeBytes || end - start > nearMaxBytes || !this.file.isResident(start, end, false))
      return undefined
    const bytes = Buffer.allocUnsafe(end - start)
    return this.file.copy(start, bytes) ? bytes : undefined
  }

  async *stream(start: number, end: number): AsyncGenerator<Uint8Array | Refusal, undefined> {
    if (end > this.sizeBytes) {
      yield refuse('upstream', 'self', `the blob of ${this.id} is shorter than its record`)
      return undefined
    }
    const buffer = Buffer.allocUnsafe(Math.min(pieceBytes, end - start))
    for (let at = start; at < end; ) {
      const piece = buffer.subarray(0, Math.min(buffer.length, end - at))
      const isHere =
        this.file.isResident(at, at + piece.length, false) || (await this.file.fetch(at, at + piece.length))
      if (!isHere || !this.file.copy(at, piece)) {
        yield refuse('upstream', 'self', `the blob of ${this.id} cannot be read`)
        return undefined
      }
      yield piece
      at += piece.length
    }
    return undefined
  }

  async close(): Promise<void> {
    if (this.#isOpen) this.leave()
    this.#isOpen = false
  }
}
