import type { Log } from '../../actor/log.js'
import { encodeBase64url } from '../../format/base64url.js'
import type { ManifestLimits } from '../../format/manifest.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { type BlobStore, blobPath, type FilePart } from '../../store/blobs.js'
import type { ManifestPacker } from './manifest-packer.js'

export interface ManifestOptions {
  readonly limits: ManifestLimits
  /** Bytes of packed manifests on disk; beyond, the longest unused go. */
  readonly cacheMaxBytes: number
  /** Manifests that wait for the pool, or are being packed; one more is refused `busy`. */
  readonly flightsMax: number
}

/** A packed manifest that can be opened. */
export interface Packed {
  /** SHA-256 of the manifest's text. */
  readonly digest: Uint8Array
  readonly path: string
}

/** Where the text of a manifest is. */
export interface ManifestText extends FilePart {
  /** Its SHA-256, where it is known. */
  readonly digest: Uint8Array | undefined
}

/** What a file takes on disk at least, and more than what is known of it takes in memory: many small forms are bounded, too. */
const blockBytes = 4096

interface CachedManifest {
  /** In whole blocks. */
  sizeBytes: number
  /** Read whole since this process started, or written by it: edge threads may look into it. */
  isChecked: boolean
}

/**
 * The packed forms of manifests on disk, each named by the digest of the manifest's text. A form appears whole: written, synced,
 * renamed. What an earlier process left is read whole before it is used, and made again where it is damaged. Forms go with their
 * content, and the longest unused where they are too many bytes.
 */
export class ManifestCache {
  /** In the order of use, as far as this thread hears of it. */
  readonly #cached = new Map<string, CachedManifest>()
  readonly #flights = new Map<string, Promise<Packed | Refusal>>()
  #bytes = 0

  constructor(
    private readonly store: BlobStore,
    private readonly packer: ManifestPacker,
    private readonly log: Log,
    private readonly options: ManifestOptions,
  ) {}

  /** Bytes of packed manifests on disk, in whole blocks. */
  get bytes(): number {
    return this.#bytes
  }

  /** Makes the folders. To be called before everything else. */
  async prepare(): Promise<void> {
    await this.store.prepare()
  }

  /**
   * Takes over what an earlier process left, and removes what belongs to no content: `isHeld` says of which there is some. What
   * is requested before its turn came is made again.
   */
  async takeOver(isHeld: (digest: Uint8Array) => boolean): Promise<void> {
    for (let first = 0; first < 256; first += 1) {
      for await (const { digest, sizeBytes } of this.store.list(first)) {
        const name = nameOf(digest)
        if (this.#cached.has(name) || this.#flights.has(name)) continue
        if (isHeld(digest)) this.#remember(name, { sizeBytes: inBlocks(sizeBytes), isChecked: false })
        else await this.store.remove(digest)
      }
    }
    await this.#trim()
  }

  /**
   * The packed form of a manifest; made where there is none, once for all who ask at that time. `again`: what is there was found
   * damaged. Refusals: `busy`; `upstream` where the text is gone or changed; `too-large`. Never rejects.
   */
  bring(text: ManifestText, again = false): Promise<Packed | Refusal> {
    const name = text.digest === undefined ? undefined : nameOf(text.digest)
    const known = name === undefined ? undefined : this.#cached.get(name)
    if (name !== undefined && text.digest !== undefined && known?.isChecked === true && !again) {
      this.#remember(name, known)
      return Promise.resolve({ digest: text.digest, path: blobPath(this.store.folder, text.digest) })
    }
    const flightName = name ?? `${text.path} ${text.offset ?? 0}`
    const running = this.#flights.get(flightName)
    if (running !== undefined) return running
    if (this.#flights.size >= this.options.flightsMax) {
      return Promise.resolve(refuse('busy', 'self', 'too many manifests are being read'))
    }
    const flight = this.#make(text, again)
      .catch((error: unknown) => {
        this.log.error({ err: error, path: text.path }, 'a manifest could not be packed')
        return refuse('busy', 'self', 'the manifest could not be prepared')
      })
      .finally(() => this.#flights.delete(flightName))
    this.#flights.set(flightName, flight)
    return flight
  }

  /** The content is about to go: its packed form, too. */
  async drop(digest: Uint8Array): Promise<void> {
    const name = nameOf(digest)
    const known = this.#cached.get(name)
    if (known === undefined) return
    this.#forget(name, known)
    await this.store.remove(digest)
  }

  async #make({ digest, ...from }: ManifestText, again: boolean): Promise<Packed | Refusal> {
    const { limits } = this.options
    const known = digest === undefined ? undefined : this.#cached.get(nameOf(digest))
    if (digest !== undefined && known !== undefined && !again) {
      const place = blobPath(this.store.folder, digest)
      const isIntact = await this.packer.check({ path: place, digest, limits })
      if (isRefusal(isIntact)) return isIntact
      known.isChecked = isIntact
      if (isIntact) return { digest, path: place }
      this.log.warn(
        { path: place },
        'a packed manifest is damaged or was made with other settings: it is made again',
      )
    }
    const draft = await this.store.draft()
    try {
      const task = { from, to: draft.path, limits, ...(digest === undefined ? {} : { digest }) }
      const outcome = await this.packer.pack(task)
      if (isRefusal(outcome) || outcome.kind !== 'packed') {
        await this.store.discard(draft)
        if (isRefusal(outcome)) return outcome
        return outcome.kind === 'too-large'
          ? refuse('too-large', 'upstream', `manifest: more than ${limits.sizeBytes} bytes`)
          : refuse('upstream', 'upstream', 'the text of the manifest was removed or replaced meanwhile')
      }
      await this.store.keep(draft, outcome.digest)
      this.#remember(nameOf(outcome.digest), { sizeBytes: inBlocks(outcome.sizeBytes), isChecked: true })
      await this.#trim()
      return { digest: outcome.digest, path: blobPath(this.store.folder, outcome.digest) }
    } catch (error) {
      await this.store.discard(draft)
      throw error
    } finally {
      await draft.handle.close()
    }
  }

  #remember(name: string, cached: CachedManifest): void {
    const before = this.#cached.get(name)
    if (before !== undefined) this.#forget(name, before)
    this.#cached.set(name, cached)
    this.#bytes += cached.sizeBytes
  }

  #forget(name: string, { sizeBytes }: CachedManifest): void {
    this.#cached.delete(name)
    this.#bytes -= sizeBytes
  }

  async #trim(): Promise<void> {
    while (this.#bytes > this.options.cacheMaxBytes && this.#cached.size > 1) {
      const [oldest] = this.#cached.keys()
      if (oldest === undefined) return
      await this.drop(Buffer.from(oldest, 'base64url'))
    }
  }
}

function inBlocks(bytes: number): number {
  return Math.ceil(bytes / blockBytes) * blockBytes
}

function nameOf(digest: Uint8Array): string {
  return encodeBase64url(digest)
}
