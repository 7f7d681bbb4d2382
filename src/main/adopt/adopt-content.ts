import { createReadStream, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../../../config/read.js'
import type { Clock } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import { attributesOf } from '../../catalog/attributes.js'
import type { CatalogRequest } from '../../catalog/catalog-messages.js'
import { IndexedCatalog } from '../../catalog/indexed.js'
import { encodeBase64url } from '../../format/base64url.js'
import { parseId } from '../../format/id.js'
import { isRefusal } from '../../format/refusal.js'
import { equalBytes, runningSha256, sha256 } from '../../proof/digest.js'
import { insist } from '../../source/keeping/commit-batch.js'
import { openSmallContent, type SmallContent } from '../../source/keeping/small-content.js'
import { BlobStore } from '../../store/blobs.js'
import { isRegularFile } from '../../store/regular-file.js'
import { folders } from '../../threads/folders.js'
import { type CatalogAtRest, openCatalogAtRest } from '../catalog-at-rest.js'
import { contentCount, contentsOf, type PeerContent, PeerDatabase } from './peer-database.js'

/** Contents of one commit. */
const batchMax = 500

export interface AdoptedContent {
  readonly added: number
  /** Their bytes are here already. */
  readonly known: number
  /** The database knows them, but the folder does not hold them. */
  readonly absent: number
  /** The file has other bytes than its name says. */
  readonly untrue: number
}

/** The settings, and where the content of the other gateway lies. */
export interface ContentPlaces {
  readonly config: Config
  /** Its `data.db`. */
  readonly database: string
  /** Its folder of contiguous data, files named by the SHA-256 of their bytes (base64url), two folders deep. */
  readonly folder: string
}

/**
 * Brings cached content of the reference gateway into the store below DATA_PATH. Every payload is hashed on its way, so its
 * digest is right. What the database says of its id may be wrong: it counts as neither verified nor trusted until it was proven
 * against the chain in the background. What is here already is skipped without being read. Rejects where DATA_PATH is in use.
 */
export async function adoptContent(
  places: ContentPlaces,
  clock: Clock,
  log: Log,
  signal: AbortSignal,
  onContent: (done: number, of: number) => void,
): Promise<AdoptedContent> {
  const taker = await openTaker(places.config, clock, log)
  let database: PeerDatabase | undefined
  try {
    database = await PeerDatabase.open(places.database, folders(places.config).root)
    const of = contentCount(database)
    let done = 0
    for (const content of contentsOf(database)) {
      if (signal.aborted) break
      await taker.take(content, places.folder)
      done += 1
      onContent(done, of)
    }
    await taker.flush()
    return taker.counts
  } finally {
    database?.close()
    await taker.close()
  }
}

/**
 * The regular file that holds these bytes; undefined where the folder has none. A device, a pipe, or a link to one may never end,
 * so only regular files are opened.
 */
export function cachedFile(folder: string, digest: Uint8Array): string | undefined {
  const name = encodeBase64url(digest)
  const below = join(name.slice(0, 2), name.slice(2, 4), name)
  return [join(folder, below), join(folder, 'data', below)].find(isRegularFile)
}

async function openTaker(config: Config, clock: Clock, log: Log): Promise<Taker> {
  const { catalog: catalogPath, blobs } = folders(config)
  const rest = await openCatalogAtRest(config, log)
  const { segments } = rest.shared
  try {
    const catalog = new IndexedCatalog(catalogPath, rest.generations, rest.index)
    const small = segments && openSmallContent(segments, clock, log)
    const store = new BlobStore(blobs, 0, small?.blobs)
    await store.prepare()
    return new Taker({ keeper: rest.keeper, catalog, store, small }, async () => {
      await store.close()
      await small?.close()
      await catalog.close()
      await rest.close()
    })
  } catch (error) {
    await rest.close()
    throw error
  }
}

interface TakerParts {
  readonly keeper: CatalogAtRest['keeper']
  readonly catalog: IndexedCatalog
  readonly store: BlobStore
  readonly small: SmallContent | undefined
}

/** Puts payloads into the store, and reports many at once to the catalog. */
class Taker {
  readonly counts = { added: 0, known: 0, absent: 0, untrue: 0 }
  #requests: CatalogRequest[] = []
  #contents = 0

  constructor(
    private readonly parts: TakerParts,
    readonly close: () => Promise<void>,
  ) {}

  async take({ id: text, digest, contentType }: PeerContent, folder: string): Promise<void> {
    const { catalog } = this.parts
    const id = parseId(text)
    if (id === undefined) return
    const here = catalog.blobSize(digest)
    const path = here === undefined ? cachedFile(folder, digest) : undefined
    if (here === undefined && path === undefined) {
      this.counts.absent += 1
      return
    }
    if (path !== undefined && !(await this.#keep(path, digest))) {
      this.counts.untrue += 1
      return
    }
    const size = here ?? statSync(path as string).size
    const wasKnown = here !== undefined && catalog.attributes(id)?.digest !== undefined
    this.counts[wasKnown ? 'known' : 'added'] += 1
    if (wasKnown) return
    const attributes = attributesOf({ id, size, verified: false, trusted: false }, { contentType, digest })
    this.#requests.push({ kind: 'learn', attributes: [attributes] })
    this.#contents += 1
    if (this.#contents >= batchMax) await this.flush()
  }

  /** What was taken so far is on disk, and the catalog knows it. Rejects where the catalog takes nothing. */
  async flush(): Promise<void> {
    const requests = this.#requests.splice(0)
    this.#contents = 0
    // The index of the segments is written before the catalog says that their payloads are there.
    this.parts.small?.blobs.commit()
    if (requests.length > 0 && !(await insist(this.parts.keeper, { kind: 'all', requests })))
      throw new Error('the catalog took nothing: is the disk full?')
  }

  /** False: the file has other bytes than its name says. Rejects where the disk does not take them. */
  async #keep(path: string, digest: Uint8Array): Promise<boolean> {
    const { size: sizeBytes } = statSync(path)
    const { small } = this.parts
    const isSmall = small !== undefined && sizeBytes <= small.blobs.payloadMaxBytes
    const kept = isSmall ? await keepSmall(small, path, digest) : await this.#keepLarge(path, digest)
    if (kept) this.#requests.push({ kind: 'kept', digest, sizeBytes, isSmall })
    return kept
  }

  async #keepLarge(path: string, digest: Uint8Array): Promise<boolean> {
    const { store } = this.parts
    const draft = await store.draft()
    const hash = runningSha256()
    let isKept = false
    try {
      for await (const piece of createReadStream(path, { highWaterMark: 1 << 20 })) {
        const bytes = piece as Buffer
        hash.update(bytes)
        await draft.handle.writeFile(bytes)
      }
      isKept = equalBytes(hash.digest(), digest)
      if (isKept) await store.keep(draft, digest)
      return isKept
    } finally {
      if (!isKept) await store.discard(draft)
      await draft.handle.close()
    }
  }
}

async function keepSmall({ blobs }: SmallContent, path: string, digest: Uint8Array): Promise<boolean> {
  const handle = await open(path, 'r')
  const bytes = await handle.readFile().finally(() => handle.close())
  if (!equalBytes(sha256(bytes), digest)) return false
  const placed = blobs.put(digest, [bytes])
  if (isRefusal(placed)) throw new Error(placed.message)
  return true
}
