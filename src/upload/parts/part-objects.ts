import { createHash, randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { EngineAway } from '../../cluster/engine-away.js'
import { namedMaxMs, type PostgresUploads } from '../../cluster/postgres-uploads.js'
import type { UploadPart } from '../../cluster/upload-rows.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { ObjectStore } from '../../source/objects/object-store.js'
import { diskRefusal, isDiskError } from '../../store/disk-error.js'
import { makeFolder } from '../../store/folder.js'
import type { ItemPiece } from '../intake/assembly.js'
import { FileDraft } from './part-files.js'
import type { PartDraft, PartStore } from './part-store.js'
import type { SharedRecords } from './shared-records.js'

export interface PartObjectsParts {
  readonly store: ObjectStore
  readonly uploads: PostgresUploads
  readonly records: Pick<SharedRecords, 'find' | 'nowMs' | 'writerOf' | 'written'>
  /** Prefix of all keys. */
  readonly prefix: string
  /** Parts lie there while they come. What an earlier process has left there is of no use. */
  readonly folder: string
}

const pieceBytes = 256 * 1024
/** Objects that are removed at once. */
const removedAtOnce = 8

const late = refuse('busy', 'self', 'no part is taken any more: another request has taken the upload over')
const unreadable = refuse('busy', 'self', 'a part cannot be read from the object store')

/** A part that came, in a file. */
interface CameIn {
  readonly path: string
  readonly start: number
  readonly size: number
  readonly sha256: Uint8Array
}

/**
 * Parts as objects, with a row for each in the database of the cluster. A part comes into a file first, because the store wants
 * its length and digest before its first byte. Each object has a name of its own and is written once. The row decides which one
 * is the part, so that one that is replaced is never half there.
 */
export class PartObjects implements PartStore {
  readonly #closing = new AbortController()
  readonly #keys: string
  #drafts = 0

  /** Throws where the disk refuses. */
  constructor(private readonly parts: PartObjectsParts) {
    rmSync(parts.folder, { recursive: true, force: true })
    makeFolder(parts.folder)
    this.#keys = `${parts.prefix}/sluice/parts/`
  }

  /** This machine alone has none. */
  uploads(): string[] {
    return []
  }

  kept(): Map<number, number> {
    return new Map()
  }

  draft(upload: string): PartDraft | Refusal {
    const writer = this.parts.records.writerOf(upload)
    if (writer === undefined) return late
    this.#drafts += 1
    try {
      const file = new FileDraft(this.parts.folder, `${this.#drafts}.new`)
      return new ObjectDraft(file, (part) => this.#keep(upload, writer, part))
    } catch (error) {
      return diskRefusal(error)
    }
  }

  /** Puts the object, then its row. Never rejects. */
  async #keep(
    upload: string,
    writer: number,
    { path, start, size, sha256 }: CameIn,
  ): Promise<Refusal | undefined> {
    const { store, uploads, records } = this.parts
    const requester = { client: this.#clientOf(upload), signal: this.#closing.signal }
    try {
      // A row that is not there yet takes no parts.
      await records.written(upload)
      const namedMs = Math.floor(records.nowMs)
      const object = `${String(namedMs).padStart(15, '0')}-${randomBytes(12).toString('hex')}`
      const content = { sizeBytes: size, sha256, bytes: () => bytesOf(path), isNew: true }
      // `exists`: the answer to an earlier try of the same request was lost.
      const put = await store.put(this.#key(upload, object), content, requester)
      if (isRefusal(put)) return refuse('busy', 'self', `a part was not kept: ${put.message}`)
      const replaced = await uploads.addPart(
        upload,
        { start, size, object },
        writer,
        namedMs,
        requester.client,
      )
      if (typeof replaced === 'string') void this.#removeObjects(upload, [replaced])
      if (replaced === undefined) void this.#removeObjects(upload, [object])
      return replaced === undefined ? late : undefined
    } catch (error) {
      // It is not known whether the row is there. An object without one is removed later (`clean`).
      if (error instanceof EngineAway) return error.refusal
      if (!isDiskError(error)) throw error
      return diskRefusal(error)
    }
  }

  /** The address range that began it. */
  #clientOf(upload: string): string | undefined {
    return this.parts.records.find(upload)?.client
  }

  #key(upload: string, object: string): string {
    return `${this.#keys}${upload}/${object}`
  }

  /** What was not removed for any reason is found by `clean`. */
  async #removeObjects(upload: string, objects: readonly string[]): Promise<void> {
    const { signal } = this.#closing
    for (let at = 0; at < objects.length && !signal.aborted; at += removedAtOnce) {
      const some = objects.slice(at, at + removedAtOnce)
      const done = await Promise.all(
        some.map((one) => this.parts.store.remove(this.#key(upload, one), signal)),
      )
      if (done.some((one) => isRefusal(one))) return
    }
  }

  async sources(upload: string, offsets: readonly number[]): Promise<readonly ItemPiece[]> {
    const all = new Map((await this.parts.uploads.parts(upload)).map((part) => [part.start, part]))
    return offsets.map((offset) => {
      const part = all.get(offset)
      return part === undefined ? () => only(unreadable) : () => this.#read(upload, part)
    })
  }

  /** The bytes of a part; a refusal is the last word. */
  async *#read(upload: string, { object, size }: UploadPart): AsyncGenerator<Uint8Array | Refusal> {
    const requester = { client: this.#clientOf(upload), signal: this.#closing.signal }
    const found = await this.parts.store.get(this.#key(upload, object), undefined, requester)
    if (isRefusal(found) || found.sizeBytes !== size) {
      if (!isRefusal(found)) found.drop()
      yield isRefusal(found) && found.refused !== 'unknown' ? found : unreadable
      return
    }
    let left = size
    for await (const piece of found.body) {
      yield piece
      if (isRefusal(piece)) return
      left -= piece.length
    }
    if (left !== 0) yield unreadable
  }

  async cut(upload: string, from: number): Promise<void> {
    const { records, uploads } = this.parts
    const writer = records.writerOf(upload)
    if (writer === undefined) return
    void this.#removeObjects(upload, await uploads.cutParts(upload, from, writer, this.#clientOf(upload)))
  }

  /** Only of one that is over. */
  async remove(upload: string): Promise<void> {
    const { records, uploads } = this.parts
    try {
      await records.written(upload)
      const gone = await uploads.dropParts(upload)
      await this.#removeObjects(
        upload,
        gone.map(({ object }) => object),
      )
    } catch (error) {
      // `clean` finds them.
      if (!(error instanceof EngineAway)) throw error
    }
  }

  /**
   * Removes parts of uploads that are over, and objects that are no parts: of parts that were refused or replaced, or of
   * machines that ended in between. By one machine at a time; two do no harm. Resolves with the number of objects. Rejects with
   * `EngineAway`.
   */
  async clean(): Promise<number> {
    const { store, uploads } = this.parts
    const { signal } = this.#closing
    await uploads.dropParts()
    let count = 0
    for (let after: string | undefined; !signal.aborted; ) {
      const page = await store.list(this.#keys, after, signal)
      if (isRefusal(page)) throw new EngineAway(page)
      const named = page.keys.flatMap((key) => {
        const [upload, object, ...more] = key.slice(this.#keys.length).split('/')
        return upload === undefined || object === undefined || more.length > 0 ? [] : [{ upload, object }]
      })
      const { objects, nowMs } = await uploads.areParts([...new Set(named.map(({ upload }) => upload))])
      for (const { upload, object } of named) {
        const atMs = Number(object.split('-')[0])
        // A younger one may become a part.
        if (objects.has(object) || !(atMs < nowMs - 2 * namedMaxMs)) continue
        await this.#removeObjects(upload, [object])
        count += 1
      }
      after = page.keys.at(-1)
      if (!page.hasMore || after === undefined) break
    }
    return count
  }

  /** The store gets no more requests. */
  async close(): Promise<void> {
    this.#closing.abort()
    await this.parts.store.close()
  }
}

/** A part on its way into a file, and then into the store. */
class ObjectDraft implements PartDraft {
  readonly #hash = createHash('sha256')

  constructor(
    private readonly file: FileDraft,
    private readonly put: (part: CameIn) => Promise<Refusal | undefined>,
  ) {}

  get sizeBytes(): number {
    return this.file.sizeBytes
  }

  write(piece: Uint8Array): undefined | Refusal | Promise<Refusal | undefined> {
    this.#hash.update(piece)
    return this.file.write(piece)
  }

  async keep(offset: number): Promise<Refusal | undefined> {
    let path: string
    try {
      path = await this.file.taken()
    } catch (error) {
      return diskRefusal(error)
    }
    try {
      return await this.put({ path, start: offset, size: this.sizeBytes, sha256: this.#hash.digest() })
    } finally {
      await rm(path, { force: true })
    }
  }

  drop(): Promise<void> {
    return this.file.drop()
  }
}

async function* only(refusal: Refusal): AsyncGenerator<Refusal> {
  yield refusal
}

/** The bytes of a file. Rejects where the disk refuses. */
async function* bytesOf(path: string): AsyncGenerator<Uint8Array> {
  const handle = await open(path, 'r')
  try {
    for (;;) {
      const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(pieceBytes), 0, pieceBytes)
      if (bytesRead === 0) return
      yield buffer.subarray(0, bytesRead)
    }
  } finally {
    await handle.close()
  }
}
