import { randomBytes } from 'node:crypto'
import type { Tip } from '../actor/shared.js'
import { entityTag } from '../attest/trust-headers.js'
import type { Attributes, ItemPlace } from '../catalog/attributes.js'
import type { Refusal } from '../format/refusal.js'
import type { Naming } from '../serving/naming.js'
import { type FileState, isSameFile } from '../store/file-stamp.js'
import type { SegmentPlace } from '../store/segments/place.js'
import { SegmentContent } from '../store/segments/segment-reader.js'
import type { SoundFiles } from '../store/sound-files.js'
import type { StoredContent } from '../store/stored-content.js'
import { EntryHeads } from './entry-heads.js'
import { typeOf } from './head-writer.js'
import type { Representation } from './plan.js'

/** An entry with so many uses since it was read counts as popular. */
const popularUses = 4

/** A boundary that content cannot hold, because it could not be guessed: 26 dashes and 96 random bits. */
function newBoundary(): string {
  return `${'-'.repeat(26)}${randomBytes(12).toString('hex')}`
}

/** A boundary that is made at its first use, because few answers have several parts. */
export function lazyBoundary(): () => string {
  let made: string | undefined
  return () => {
    made ??= newBoundary()
    return made
  }
}

/** What an entry takes in memory without heads: its objects, and the key in the table. */
function plainBytes({ place, header, contentType }: Attributes): number {
  let bytes = 800 + (contentType?.length ?? 0)
  if (place !== undefined) bytes += 400 + 80 * place.path.length
  if (header === undefined) return bytes
  bytes += 800 + header.signature.length + header.owner.length
  for (const { name, value } of header.tags) bytes += 300 + name.length + value.length
  return bytes
}

/** What all answers about one id have in common, prepared once and kept while the catalog does not change. */
export class Entry {
  readonly contentType: string
  readonly entityTag: string | undefined
  /**
   * Path of the file of the blob; undefined where the store does not hold the blob. Small blobs lie in a segment
   * (`segmentPlace`), and have no file there.
   */
  blobPath: string | undefined
  /** State of the file when its bytes were checked against its digest. */
  sound: FileState | undefined
  /** Place of the payload in the segments of this disk; undefined: not there. `attributes.place` is that in a bundle. */
  segmentPlace: SegmentPlace | undefined
  /** The commit number of the segments at which `segmentPlace` was looked up. */
  segmentPlaceAt = Number.NaN
  /** The number of withdrawals from the segments before that look-up. */
  segmentWithdrawals = Number.NaN
  /** Whether the bytes at a place in a stored bundle are the item, with that place and the digest of that bundle. */
  judged: { readonly place: ItemPlace; readonly rootDigest: Uint8Array; readonly holds: boolean } | undefined
  /** The check under way. */
  checking: Promise<boolean | Refusal> | undefined
  /** Served since the last report to the keeper. */
  touched = false
  /** Version of the block list under which nothing was blocked. */
  clearAt = Number.NaN
  /** Used since the last pass of eviction. */
  isUsed = false
  /** Estimate of the memory that it takes. */
  bytes: number
  #uses = 0
  #heads: EntryHeads | undefined
  #boundary: string | undefined

  /** `onGrow` is called with each change of `bytes`. */
  constructor(
    readonly attributes: Attributes,
    /** The generation of the id in the catalog, when the attributes were read. */
    readonly generation: number,
    readonly stable: boolean,
    private readonly onGrow: (entry: Entry, bytes: number) => void = () => undefined,
  ) {
    this.contentType = typeOf(attributes)
    this.entityTag = attributes.digest === undefined ? undefined : entityTag(attributes.digest)
    this.bytes = plainBytes(attributes)
  }

  /** Counts a request. */
  use(): void {
    this.isUsed = true
    this.#uses += 1
  }

  /** The heads of its answers. */
  get heads(): EntryHeads {
    this.#heads ??= new EntryHeads(this)
    return this.#heads
  }

  /** Counts memory that was taken for it, bytes; negative where some was released. */
  grow(bytes: number): void {
    this.bytes += bytes
    this.onGrow(this, bytes)
  }

  /** Used a few times since it was read. */
  get isPopular(): boolean {
    return this.#uses >= popularUses
  }

  /** One for all multipart answers of this entry, so that one signed head serves many of them. */
  boundary(): string {
    this.#boundary ??= newBoundary()
    return this.#boundary
  }

  /** The tag of an answer: content served by a name has a tag of its own. */
  tagFor(naming: Naming | undefined): string | undefined {
    const { digest } = this.attributes
    const resolvedId = naming?.resolvedId
    return resolvedId === undefined || digest === undefined ? this.entityTag : entityTag(digest, resolvedId)
  }

  /** The representation that an answer by this name shows. */
  representationFor(naming: Naming | undefined): Representation {
    const { attributes, contentType } = this
    const boundary = (): string => this.boundary()
    return { sizeBytes: attributes.size, contentType, entityTag: this.tagFor(naming), boundary }
  }

  /** True where `content` is the file that was checked, by this thread or another one. */
  isSound(content: StoredContent, files: SoundFiles): boolean {
    const { digest, size } = this.attributes
    const { sizeBytes } = content
    if (sizeBytes !== size) return false
    if (content instanceof SegmentContent) return content.sound
    const { stamp } = content
    if (this.sound !== undefined && isSameFile(this.sound, stamp)) return true
    if (digest === undefined || !files.has(digest, sizeBytes, stamp)) return false
    this.sound = stamp
    return true
  }
}

/** True once the block at `height` lies `forkDepth` blocks behind the tip. */
export function isStable(height: number | undefined, tip: Tip, forkDepth: number): boolean {
  return height !== undefined && tip.height - height >= forkDepth
}
