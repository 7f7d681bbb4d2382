import type { Attributes } from '../catalog/attributes.js'
import type { SplitHead } from '../http/exchange.js'
import { splitHeadOf } from '../http/write-head.js'
import { idLead } from '../serving/cors.js'
import type { Naming } from '../serving/naming.js'
import { type Facts, type HeadWriter, type PreparedHead, statusOfVariant } from './head-writer.js'
import type { Variant } from './plan.js'

/** Written heads kept per entry: GET and HEAD by id, raw, and one spare. */
const writtenMax = 4

/** Heads kept unsigned per entry for names that lead to it; those of further names are prepared for each request. */
const namedMax = 4

/** Where signatures last less than this, the unsigned head is kept to be signed again; else it is made anew. */
const keptUnsignedSeconds = 10

/** What a written head takes in memory beside its text, bytes. */
const headObjectBytes = 400

const variants: readonly Variant[] = ['whole', 'part', 'parts', 'unchanged']

/** What kind of answer a head is for. */
export interface HeadKind {
  readonly variant: Variant
  /** From the store; false: from the catalog alone. */
  readonly cached: boolean
  /** The bytes were checked. */
  readonly sound: boolean
  readonly fallback: boolean
  readonly naming?: Naming | undefined
  /** Lines behind the signature that many answers have in common, each with CRLF in front. */
  readonly tail?: string
}

/** A head and the time in which it may be sent. */
export interface TimedHead {
  readonly split: SplitHead
  /** First and last second of the Unix time in which its signature may be sent. A head without a signature has no limits. */
  readonly fromSeconds: number
  readonly untilSeconds: number
}

/** A head as it is sent, and what it was written for. It is written again when its time is over. */
interface WrittenHead extends TimedHead {
  readonly kindNumber: number
  readonly naming: Naming | undefined
  readonly tail: string
  readonly method: string
  readonly path: string
  split: SplitHead
  fromSeconds: number
  untilSeconds: number
}

interface NamedHead {
  readonly kindNumber: number
  readonly naming: Naming
  readonly head: PreparedHead
}

/** The entry that heads are written for. */
export interface HeadSubject {
  readonly attributes: Attributes
  readonly stable: boolean
  boundary(): string
  /** Counts memory of the heads, bytes; negative where it was released. */
  grow(bytes: number): void
}

/**
 * The heads of answers about one entry. A head is made in two steps: `HeadWriter.prepare` writes its lines, `HeadWriter.signed`
 * adds the signature for a method and a path. What is kept is the written head, for as long as its signature may be sent. Where
 * that is short, the prepared one is kept, too.
 */
export class EntryHeads {
  readonly #written: WrittenHead[] = []
  /** Which of the written heads the next one replaces. */
  #nextOut = 0
  /** Prepared heads of answers by id, by the number of their kind. */
  #prepared: Map<number, PreparedHead> | undefined
  #preparedByName: NamedHead[] | undefined

  constructor(private readonly entry: HeadSubject) {}

  /**
   * The head of an answer of this kind to `method` and `path` at `seconds` (Unix time): one that was written before, if it may
   * still be sent. It lacks the request's id and the lines of this answer alone.
   */
  headFor(kind: HeadKind, method: string, path: string, seconds: number, writer: HeadWriter): TimedHead {
    const { naming, tail = '' } = kind
    const kindNumber = numberOf(kind)
    // A few comparisons cost less than making a key and hashing it.
    for (const known of this.#written) {
      const isSameKind = known.kindNumber === kindNumber && known.naming === naming && known.tail === tail
      if (!isSameKind || known.path !== path || known.method !== method) continue
      if (seconds < known.fromSeconds || seconds > known.untilSeconds)
        this.#write(known, kind, seconds, writer)
      return known
    }
    const request = { method, path }
    const fresh = { kindNumber, naming, tail, ...request, split: noHead, fromSeconds: 0, untilSeconds: 0 }
    this.#write(fresh, kind, seconds, writer)
    this.#keep(fresh)
    return fresh
  }

  #keep(fresh: WrittenHead): void {
    if (this.#written.length < writtenMax) {
      this.#written.push(fresh)
      this.entry.grow(headObjectBytes)
      return
    }
    const out = this.#written[this.#nextOut]
    this.entry.grow(-(out?.split.after.length ?? 0))
    this.#written[this.#nextOut] = fresh
    this.#nextOut = (this.#nextOut + 1) % writtenMax
  }

  /** Writes a head into its record, with a signature of this second where it has one. */
  #write(head: WrittenHead, kind: HeadKind, seconds: number, writer: HeadWriter): void {
    const prepared = this.#preparedFor(kind, head.kindNumber, writer)
    const { method, path } = head
    const status = statusOf(kind)
    const block = writer.signed(prepared, { status, method, path }, seconds)
    this.entry.grow(-head.split.after.length)
    head.split = splitHeadOf(status, idLead, `\r\n${block}${head.tail}`)
    this.entry.grow(head.split.after.length)
    const isSigned = prepared.covered !== undefined
    head.fromSeconds = isSigned ? seconds : Number.NEGATIVE_INFINITY
    head.untilSeconds = isSigned ? seconds + writer.reuseSeconds : Number.POSITIVE_INFINITY
  }

  /** The lines of the head, without a signature: kept ones, or new ones. */
  #preparedFor(kind: HeadKind, kindNumber: number, writer: HeadWriter): PreparedHead {
    const { naming } = kind
    if (naming !== undefined) return this.#preparedByNaming(kind, naming, kindNumber, writer)
    const known = this.#prepared?.get(kindNumber)
    if (known !== undefined) return known
    const head = this.#prepare(kind, writer)
    if (!isKept(head, writer)) return head
    this.#prepared ??= new Map()
    this.#prepared.set(kindNumber, head)
    this.entry.grow(preparedBytes(head))
    return head
  }

  /** Keeps the newest: each new resolution of a name is another object, so heads of old resolutions are dropped in time. */
  #preparedByNaming(kind: HeadKind, naming: Naming, kindNumber: number, writer: HeadWriter): PreparedHead {
    const known = this.#preparedByName?.find((one) => one.naming === naming && one.kindNumber === kindNumber)
    if (known !== undefined) return known.head
    const head = this.#prepare(kind, writer)
    if (!isKept(head, writer)) return head
    this.#preparedByName ??= []
    const out = this.#preparedByName.length === namedMax ? this.#preparedByName.shift() : undefined
    if (out !== undefined) this.entry.grow(-preparedBytes(out.head))
    this.#preparedByName.push({ kindNumber, naming, head })
    this.entry.grow(preparedBytes(head))
    return head
  }

  #prepare(kind: HeadKind, writer: HeadWriter): PreparedHead {
    const { attributes, stable } = this.entry
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
    return writer.prepare(facts, kind.variant, () => this.entry.boundary())
  }
}

/** The kind as one number, without its name and tail. */
function numberOf({ variant, cached, sound, fallback }: HeadKind): number {
  return variants.indexOf(variant) | (cached ? 4 : 0) | (sound ? 8 : 0) | (fallback ? 16 : 0)
}

/** Prepared heads are kept to be signed again soon. What is never signed is kept as a written head alone. */
function isKept({ covered }: PreparedHead, { reuseSeconds }: HeadWriter): boolean {
  return covered !== undefined && reuseSeconds < keptUnsignedSeconds
}

/** Memory of a prepared head: the block, its lines once more as they are signed, and what the lines take beside their text. */
function preparedBytes({ block, covered = [] }: PreparedHead): number {
  return 400 + 2 * block.length + 100 * covered.length
}

function statusOf({ variant, naming }: HeadKind): number {
  return naming?.status ?? statusOfVariant[variant]
}

const noHead: SplitHead = { before: '', after: '' }
