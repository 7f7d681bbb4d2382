import { randomBytes } from 'node:crypto'
import type { Tip } from '../actor/shared.js'
import { entityTag } from '../attest/trust-headers.js'
import type { Attributes, ItemPlace } from '../catalog/attributes.js'
import type { Refusal } from '../format/refusal.js'
import type { SplitHead } from '../http/exchange.js'
import { splitHeadOf } from '../http/write-head.js'
import { idLead } from '../serving/cors.js'
import type { Naming } from '../serving/naming.js'
import { type FileState, isSameFile } from '../store/file-stamp.js'
import type { SegmentPlace } from '../store/segments/place.js'
import { SegmentContent } from '../store/segments/segment-reader.js'
import type { SoundFiles } from '../store/sound-files.js'
import type { StoredContent } from '../store/stored-content.js'
import { type Facts, type HeadWriter, type PreparedHead, statusOfVariant, typeOf } from './head.js'
import type { Representation, Variant } from './plan.js'

/** Signed heads kept per entry: GET and HEAD by id, raw, and one spare. */
const signedMax = 4

/** Where signatures last less than this, the unsigned head is kept to be signed again; else it is made anew. */
const keptUnsignedSeconds = 10

/** An entry with so many uses since it was read counts as popular. */
const popularUses = 4

const variants: readonly Variant[] = ['whole', 'part', 'parts', 'unchanged']

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

/** A head and the time in which it may be sent. */
export interface TimedHead {
  readonly split: SplitHead
  /** First and last second in which it may be sent. Unsigned heads have no limits. */
  readonly fromSeconds: number
  readonly untilSeconds: number
}

interface Signed extends TimedHead {
  readonly manner: number
  readonly naming: Naming | undefined
  readonly tail: string
  readonly method: string
  readonly path: string
  split: SplitHead
  fromSeconds: number
  untilSeconds: number
}

/** Heads kept per entry for names that lead to it; heads of further names are prepared for each request. */
const namedMax = 4

interface Named {
  readonly manner: number
  readonly naming: Naming
  readonly head: PreparedHead
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

/** What a head takes in memory beside its text. */
const headObjectBytes = 400

/** What all answers about one id have in common, prepared once and kept while the catalog does not change. */
export class Entry {
  readonly contentType: string
  readonly entityTag: string | undefined
  /**
   * Path of the file of the blob; undefined where the store does not hold the blob. Small blobs lie in a segment (`place`), and
   * have no file there.
   */
  blobPath: string | undefined
  /** State of the file when its bytes were checked against its digest. */
  sound: FileState | undefined
  /** Place of the payload in the segments, by their index at its commit `placeAt`; undefined: not there. */
  place: SegmentPlace | undefined
  placeAt = Number.NaN
  /** Withdrawals from the segments, before that was looked up. */
  placeWithdrawals = Number.NaN
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
  #heads: Map<number, PreparedHead> | undefined
  #named: Named[] | undefined
  #boundary: string | undefined
  readonly #signed: Signed[] = []
  #nextOut = 0

  /** `onGrow` is called with each change of `bytes`. */
  constructor(
    readonly attributes: Attributes,
    /** Of the catalog, when the attributes were read. */
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

  /**
   * The head of an answer from the store (or from the catalog alone, where `cached` is false). It lacks the request's id and the
   * lines of this answer alone. `sound`: the bytes were checked. Kept for as long as its signature may be used.
   */
  timedHead(kind: HeadKind, method: string, path: string, seconds: number, writer: HeadWriter): TimedHead {
    const { variant, cached, sound, fallback, naming, tail = '' } = kind
    const manner = variants.indexOf(variant) | (cached ? 4 : 0) | (sound ? 8 : 0) | (fallback ? 16 : 0)
    // A few comparisons cost less than making a key and hashing it.
    for (const known of this.#signed) {
      const same = known.manner === manner && known.naming === naming && known.tail === tail
      if (!same || known.path !== path || known.method !== method) continue
      if (seconds < known.fromSeconds || seconds > known.untilSeconds)
        this.#sign(known, kind, seconds, writer)
      return known
    }
    const fresh = {
      manner,
      naming,
      tail,
      method,
      path,
      split: noHead,
      fromSeconds: 0,
      untilSeconds: 0,
    }
    this.#sign(fresh, kind, seconds, writer)
    this.#keep(fresh)
    return fresh
  }

  #keep(fresh: Signed): void {
    if (this.#signed.length < signedMax) {
      this.#signed.push(fresh)
      this.#grow(headObjectBytes)
      return
    }
    const out = this.#signed[this.#nextOut]
    this.#grow(-(out?.split.after.length ?? 0))
    this.#signed[this.#nextOut] = fresh
    this.#nextOut = (this.#nextOut + 1) % signedMax
  }

  #grow(bytes: number): void {
    this.bytes += bytes
    this.onGrow(this, bytes)
  }

  #sign(one: Signed, kind: HeadKind, seconds: number, writer: HeadWriter): void {
    const head = this.#head(kind, one.manner, writer)
    const { method, path } = one
    const status = statusOf(kind)
    const block = writer.signed(head, { status, method, path }, seconds)
    this.#grow(-one.split.after.length)
    one.split = splitHeadOf(status, idLead, `\r\n${block}${one.tail}`)
    this.#grow(one.split.after.length)
    const isSigned = head.covered !== undefined
    one.fromSeconds = isSigned ? seconds : Number.NEGATIVE_INFINITY
    one.untilSeconds = isSigned ? seconds + writer.reuseSeconds : Number.POSITIVE_INFINITY
  }

  #head(kind: HeadKind, manner: number, writer: HeadWriter): PreparedHead {
    const { naming } = kind
    if (naming !== undefined) return this.#namedHead(kind, naming, manner, writer)
    const known = this.#heads?.get(manner)
    if (known !== undefined) return known
    const head = this.#prepare(kind, writer)
    if (!isKept(head, writer)) return head
    this.#heads ??= new Map()
    this.#heads.set(manner, head)
    this.#grow(unsignedBytes(head))
    return head
  }

  /** Keeps the newest: each new resolution of a name is another object, so heads of old resolutions are dropped in time. */
  #namedHead(kind: HeadKind, naming: Naming, manner: number, writer: HeadWriter): PreparedHead {
    const known = this.#named?.find((one) => one.naming === naming && one.manner === manner)
    if (known !== undefined) return known.head
    const head = this.#prepare(kind, writer)
    if (!isKept(head, writer)) return head
    this.#named ??= []
    const out = this.#named.length === namedMax ? this.#named.shift() : undefined
    if (out !== undefined) this.#grow(-unsignedBytes(out.head))
    this.#named.push({ manner, naming, head })
    this.#grow(unsignedBytes(head))
    return head
  }

  #prepare(kind: HeadKind, writer: HeadWriter): PreparedHead {
    const { attributes, stable } = this
    const facts: Facts = {
      attributes,
      cached: kind.cached,
      verified: kind.cached && kind.sound && attributes.verified,
      trusted: attributes.trusted,
      stable,
      digest: attributes.digest,
      // From the catalog alone only HEAD and 304 are answered: they promise what the index knows.
      hashed: kind.sound || !kind.cached,
      fallback: kind.fallback,
      naming: kind.naming,
    }
    return writer.prepare(facts, kind.variant, () => this.boundary())
  }
}

/** Unsigned heads are kept to be signed again soon. What is never signed is kept as a written head alone. */
function isKept({ covered }: PreparedHead, { reuseSeconds }: HeadWriter): boolean {
  return covered !== undefined && reuseSeconds < keptUnsignedSeconds
}

/** The block, its lines once more as they are signed, and what the lines take beside their text. */
function unsignedBytes({ block, covered = [] }: PreparedHead): number {
  return 400 + 2 * block.length + 100 * covered.length
}

function statusOf({ variant, naming }: HeadKind): number {
  return naming?.status ?? statusOfVariant[variant]
}

const noHead: SplitHead = { before: '', after: '' }

/** What kind of answer a head is for. */
export interface HeadKind {
  readonly variant: Variant
  readonly cached: boolean
  readonly sound: boolean
  readonly fallback: boolean
  readonly naming?: Naming | undefined
  /** Lines behind the signature that many answers have in common, each with CRLF in front. */
  readonly tail?: string
}

/** True once the block at `height` lies `forkDepth` blocks behind the tip. */
export function isStable(height: number | undefined, tip: Tip, forkDepth: number): boolean {
  return height !== undefined && tip.height - height >= forkDepth
}
