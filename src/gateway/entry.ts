import { randomBytes } from 'node:crypto'
import type { Tip } from '../actor/shared.js'
import { entityTag } from '../attest/trust-headers.js'
import type { Attributes } from '../catalog/attributes.js'
import type { Catalog } from '../catalog/protocol.js'
import type { Id } from '../format/id.js'
import type { Refusal } from '../format/refusal.js'
import type { Frame } from '../http/exchange.js'
import { frameOf } from '../http/frame.js'
import type { MappedContent } from '../store/mapped.js'
import { idLead } from './cors.js'
import { type Facts, type HeadWriter, type PreparedHead, statusOfVariant, typeOf } from './head.js'
import type { Naming } from './naming.js'
import type { Variant } from './plan.js'

/** A file as it was when it was last checked: another inode, time or size is another file. */
export interface Stamp {
  readonly inode: bigint
  readonly modifiedNs: bigint
}

/** Signed heads of one second kept per entry: GET and HEAD by id, raw, and one spare. */
const signedMax = 4

const variants: readonly Variant[] = ['whole', 'part', 'parts', 'unchanged']

/** A boundary that nobody can have written into the content: 26 dashes and 96 random bits. */
function newBoundary(): string {
  return `${'-'.repeat(26)}${randomBytes(12).toString('hex')}`
}

/** A boundary that is made when it is first asked for: few answers have several parts. */
export function lateBoundary(): () => string {
  let made: string | undefined
  return () => {
    made ??= newBoundary()
    return made
  }
}

interface Signed {
  readonly manner: number
  readonly naming: Naming | undefined
  readonly method: string
  readonly path: string
  readonly frame: Frame
}

/** Heads kept per entry for names that serve it: a page and its sibling names; others are prepared anew. */
const namedMax = 4

interface Named {
  readonly manner: number
  readonly naming: Naming
  readonly head: PreparedHead
}

/** Everything that answers about one id have in common, made once and kept while it is true. */
export class Entry {
  readonly contentType: string
  readonly entityTag: string | undefined
  /** Path of the blob; undefined where the store does not hold it. */
  path: string | undefined
  /** The file that was checked to be what its name says. */
  sound: Stamp | undefined
  /** The check under way. */
  checking: Promise<boolean | Refusal> | undefined
  /** Served since the keeper was last told. */
  touched = false
  /** Version of the block list under which nothing was blocked. */
  clearAt = Number.NaN
  readonly #heads = new Map<number, PreparedHead>()
  #named: Named[] = []
  #signed: Signed[] = []
  #second = -1

  constructor(
    readonly attributes: Attributes,
    /** Of the catalog, when the attributes were read. */
    readonly generation: number,
    readonly stable: boolean,
  ) {
    this.contentType = typeOf(attributes)
    this.entityTag = attributes.digest === undefined ? undefined : entityTag(attributes.digest)
  }

  /** One for all multipart answers of this entry: so their head, too, is signed once a second. */
  readonly boundary: () => string = lateBoundary()

  /** The tag of an answer: content served by a name has one that says so. */
  tagFor(naming: Naming | undefined): string | undefined {
    const { digest } = this.attributes
    const resolvedId = naming?.resolvedId
    return resolvedId === undefined || digest === undefined ? this.entityTag : entityTag(digest, resolvedId)
  }

  /** True where `content` is the file that was checked. */
  isSound(content: MappedContent): boolean {
    const { sound } = this
    return (
      sound !== undefined &&
      sound.inode === content.inode &&
      sound.modifiedNs === content.modifiedNs &&
      content.sizeBytes === this.attributes.size
    )
  }

  /**
   * The head of an answer from the store, or from the catalog alone where `cached` is false, but for the request's id and the
   * lines of this very answer. `sound` says whether the bytes were checked. Remembered for its second.
   */
  frame(answer: Answer, method: string, path: string, seconds: number, writer: HeadWriter): Frame {
    if (seconds !== this.#second) {
      this.#signed = []
      this.#second = seconds
    }
    const { variant, cached, sound, fallback, naming } = answer
    const manner = variants.indexOf(variant) | (cached ? 4 : 0) | (sound ? 8 : 0) | (fallback ? 16 : 0)
    // A few comparisons cost less than making a key and hashing it.
    for (const known of this.#signed) {
      const same = known.manner === manner && known.naming === naming
      if (same && known.path === path && known.method === method) return known.frame
    }
    const status = naming?.status ?? statusOfVariant[variant]
    const block = writer.signed(this.#head(answer, manner, writer), status, method, path, seconds)
    const frame = frameOf(status, idLead, `\r\n${block}`)
    if (this.#signed.length < signedMax) this.#signed.push({ manner, naming, method, path, frame })
    return frame
  }

  #head(answer: Answer, manner: number, writer: HeadWriter): PreparedHead {
    const { naming } = answer
    if (naming !== undefined) return this.#namedHead(answer, naming, manner, writer)
    const known = this.#heads.get(manner)
    if (known !== undefined) return known
    const head = this.#prepare(answer, writer)
    this.#heads.set(manner, head)
    return head
  }

  /** The youngest stay: a name that is resolved anew brings another object, and its heads fall out in time. */
  #namedHead(answer: Answer, naming: Naming, manner: number, writer: HeadWriter): PreparedHead {
    const known = this.#named.find((one) => one.naming === naming && one.manner === manner)
    if (known !== undefined) return known.head
    const head = this.#prepare(answer, writer)
    if (this.#named.length === namedMax) this.#named.shift()
    this.#named.push({ manner, naming, head })
    return head
  }

  #prepare(answer: Answer, writer: HeadWriter): PreparedHead {
    const { attributes, stable } = this
    const facts: Facts = {
      attributes,
      cached: answer.cached,
      verified: answer.cached && answer.sound && attributes.verified,
      trusted: attributes.trusted,
      stable,
      digest: attributes.digest,
      // From the catalog alone only HEAD and 304 are answered: they promise what the index knows.
      hashed: answer.sound || !answer.cached,
      fallback: answer.fallback,
      naming: answer.naming,
    }
    return writer.prepare(facts, answer.variant, this.boundary)
  }
}

/** What kind of answer a head is for. */
export interface Answer {
  readonly variant: Variant
  readonly cached: boolean
  readonly sound: boolean
  readonly fallback: boolean
  readonly naming?: Naming | undefined
}

/** True once the block at `height` lies `forkDepth` blocks behind the tip. */
export function isStable(height: number | undefined, tip: Tip, forkDepth: number): boolean {
  return height !== undefined && tip.height - height >= forkDepth
}

/** The entries of one thread: the most recently used stay. */
export class Entries {
  readonly #kept = new Map<Id, Entry>()

  constructor(
    private readonly catalog: Omit<Catalog, 'holder'>,
    private readonly pathOf: (digest: Uint8Array) => string,
    private readonly tip: Tip,
    private readonly options: { readonly entriesMax: number; readonly forkDepth: number },
  ) {}

  /** The entry of `id` as the catalog knows it now; undefined where it knows nothing. */
  get(id: Id): Entry | undefined {
    const kept = this.#kept.get(id)
    if (kept !== undefined && this.#isFresh(kept, id)) {
      // Moving an entry to the young end costs as much as finding it: not worth it while there is room.
      if (this.#kept.size * 2 > this.options.entriesMax) this.#keep(id, kept)
      if (kept.path === undefined) this.#place(kept)
      return kept
    }
    return this.#read(id, kept)
  }

  /** Forgets what was prepared: the next `get` reads the catalog. */
  forget(id: Id): void {
    this.#kept.delete(id)
  }

  #isFresh(entry: Entry, id: Id): boolean {
    return (
      entry.generation === this.catalog.generation(id) &&
      entry.stable === isStable(entry.attributes.height, this.tip, this.options.forkDepth)
    )
  }

  #read(id: Id, before: Entry | undefined): Entry | undefined {
    // The generation first: what changes between the two reads is then noticed at the next request.
    const generation = this.catalog.generation(id)
    const attributes = this.catalog.attributes(id)
    if (attributes === undefined) {
      this.#kept.delete(id)
      return undefined
    }
    const entry = new Entry(
      attributes,
      generation,
      isStable(attributes.height, this.tip, this.options.forkDepth),
    )
    this.#place(entry)
    // A check belongs to the file, not to what else is known of the id.
    if (before?.entityTag === entry.entityTag) entry.sound = before?.sound
    this.#keep(id, entry)
    return entry
  }

  /** Looks whether the store holds the blob. Blobs that come later change no generation. */
  #place(entry: Entry): void {
    const { digest } = entry.attributes
    if (digest !== undefined && this.catalog.blobSize(digest) !== undefined) entry.path = this.pathOf(digest)
  }

  #keep(id: Id, entry: Entry): void {
    this.#kept.delete(id)
    this.#kept.set(id, entry)
    if (this.#kept.size <= this.options.entriesMax) return
    const [oldest] = this.#kept.keys()
    if (oldest !== undefined) this.#kept.delete(oldest)
  }
}
