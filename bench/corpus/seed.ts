import { linkSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { systemClock } from '../../src/actor/clock.js'
import type { Attributes } from '../../src/catalog/attributes.js'
import { CatalogKeeper } from '../../src/catalog/catalog-keeper.js'
import type { CatalogRequest } from '../../src/catalog/catalog-messages.js'
import { Generations } from '../../src/catalog/generations.js'
import type { Id } from '../../src/format/id.js'
import { isRefusal } from '../../src/format/refusal.js'
import { LocalRegistry } from '../../src/names/local-registry.js'
import { parseName } from '../../src/names/name.js'
import type { Name, NameRecord } from '../../src/names/names-port.js'
import { blobPath } from '../../src/store/blobs.js'
import { marksBytes, SegmentMarks } from '../../src/store/segments/segment-marks.js'
import { SegmentStore, segmentDefaults } from '../../src/store/segments/segment-store.js'

/** As many segments as any corpus needs. */
const shape = { cells: 1024, segmentBytes: segmentDefaults.segmentBytes }

function openSegments(folder: string): SegmentStore {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const marks = new SegmentMarks(new SharedArrayBuffer(marksBytes(shape)), shape)
  const { payloadMaxBytes, commitMs } = segmentDefaults
  const rules = {
    folder,
    payloadMaxBytes,
    commitMs,
    freeMinBytes: 0,
    maxBytes: () => Number.MAX_SAFE_INTEGER,
  }
  const log = {
    warn: (about: object, words?: string) => sayTrouble(words, about),
    error: (about: object, words?: string) => sayTrouble(words, about),
  }
  const kept = { isPinned: () => true, onEvicted: () => undefined }
  return SegmentStore.open({ ...rules, ...kept }, marks, systemClock, log)
}

function sayTrouble(words: string | undefined, about: object): never {
  throw new Error(`${words}: ${JSON.stringify(about)}`)
}

/**
 * Puts content and records into a gateway's data folder as if it had fetched, proven and stored them. The gateway must not
 * run.
 */
export class Seeding {
  readonly #keeper: CatalogKeeper
  readonly #segments: SegmentStore
  readonly #blobs: string
  readonly #names: string
  #waiting: CatalogRequest[] = []

  constructor(dataPath: string) {
    const path = join(dataPath, 'catalog')
    mkdirSync(path, { recursive: true, mode: 0o700 })
    this.#segments = openSegments(join(dataPath, 'segments'))
    this.#blobs = join(dataPath, 'blobs')
    this.#names = join(dataPath, 'names')
    this.#keeper = new CatalogKeeper({ path, touchEveryMs: 60_000 }, new Generations(), systemClock)
  }

  /** A whole content, from a file or bytes: in segments or a file of its own, as its size has it. */
  async content(
    known: Pick<Attributes, 'id' | 'size' | 'contentType'> & { digest: Uint8Array },
    from: string | Uint8Array,
  ): Promise<void> {
    if (known.size <= segmentDefaults.payloadMaxBytes) this.#inSegment(known.digest, from)
    else this.#inFile(known.digest, from)
    await this.tell({
      kind: 'learn',
      attributes: [
        { contentType: 'application/octet-stream', ...known, height: 1, verified: true, trusted: true },
      ],
    })
    await this.tell({ kind: 'kept', digest: known.digest, sizeBytes: known.size })
  }

  /** A payload that no record names. */
  payload(digest: Uint8Array, bytes: Uint8Array): void {
    this.#inSegment(digest, bytes)
  }

  #inSegment(digest: Uint8Array, from: string | Uint8Array): void {
    const put = this.#segments.put(digest, [typeof from === 'string' ? readFileSync(from) : from])
    if (isRefusal(put)) throw new Error(put.message)
  }

  #inFile(digest: Uint8Array, from: string | Uint8Array): void {
    const blob = blobPath(this.#blobs, digest)
    mkdirSync(dirname(blob), { recursive: true, mode: 0o700 })
    try {
      if (typeof from === 'string') linkSync(from, blob)
      else writeFileSync(blob, from, { mode: 0o600 })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error // the same bytes under another id
    }
  }

  /** Anything else that the catalog may be told. Written in large transactions. */
  async tell(message: CatalogRequest): Promise<void> {
    this.#waiting.push(message)
    if (this.#waiting.length >= 10_000) await this.#flush()
  }

  /** Names that lead to ids. */
  async name(names: readonly (readonly [string, Id])[]): Promise<void> {
    const registry = new LocalRegistry(this.#names)
    registry.set(
      names.map(([text, id]): readonly [Name, NameRecord] => {
        const name = parseName(text)
        if (name === undefined) throw new Error(`${text} is no name`)
        return [name, { id, ttlSeconds: 86_400 }]
      }),
    )
    await registry.close()
  }

  /** Everything is on the disk then. */
  async close(): Promise<void> {
    await this.#flush()
    await this.#segments.close()
    await this.#keeper.close()
  }

  async #flush(): Promise<void> {
    const messages = this.#waiting
    this.#waiting = []
    await Promise.all(messages.map((message) => this.#keeper.handle(message)))
  }
}
