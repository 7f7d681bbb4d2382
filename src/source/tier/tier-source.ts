import { type AnySignal, signalOf } from '../../actor/lazy-signal.js'
import { Gathered } from '../../format/gathered.js'
import { type Id, parseId } from '../../format/id.js'
import { type ItemHeader, itemHeaderSizeMax, parseItemHeader } from '../../format/item.js'
import { headersOfPayload } from '../../format/media-type.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { ItemVerifier } from '../../proof/item-verifier.js'
import type { ObjectBody, ObjectHead, ObjectStore } from '../objects/object-store.js'
import { unknownEverywhere } from '../refusals.js'
import type { Found, Learned, Source, Wanted } from '../source.js'
import type { Hints, Window } from '../source-messages.js'
import { cut as cutPieces } from '../upstream/cut.js'
import { namedObject } from './pack-format.js'
import type { TierKeys } from './tier-keys.js'
import type { StoredPlace } from './tier-records.js'

export type ReadOutcome = 'packed' | 'object' | 'absent' | 'forged' | 'failed'

export interface TierSourceParts {
  /** `s3` where absent. */
  readonly name?: string
  readonly store: Pick<ObjectStore, 'get'>
  readonly keys: Pick<TierKeys, 'pack' | 'object'>
  /** What is known of the packs; undefined: nothing may be read of them. */
  readonly packed: (id: Id) => StoredPlace | undefined
  /**
   * A content is not what the store says, or its pack is gone. `pack`: where it was read, which `packed` may no longer name;
   * undefined: from an object of its own.
   */
  readonly wrong: (id: Id, pack: string | undefined, isPackGone: boolean) => void
  readonly read: (outcome: ReadOutcome) => void
}

/** What an object says of itself. */
interface Described {
  /** Bytes of the object. */
  readonly sizeBytes: number
  readonly dataStart: number
  readonly contentType: string | undefined
  readonly hints: Hints
}

const usualName = 's3'

/** Headers of items are mostly shorter: RSA keys and signatures with a thousand bytes of tags. */
const headerUsualBytes = 4096

/** The user metadata of an object; `payload-…` as ar-io-node reads it. */
export const objectMetadata = {
  dataStart: 'payload-data-start',
  contentType: 'payload-content-type',
  rootId: 'root-transaction-id',
  rootItemOffset: 'root-item-offset',
} as const

/** Types that services give to objects that were put without one. */
const untyped = /^(binary|application)\/octet-stream$/

/**
 * Content in an object store. Whoever can write there can put anything under any id, so it counts as the word of a stranger: it
 * is compared with the digest on record, where there is one, else proven in the background. An item with its header is compared
 * with its owner's signature besides, before its last byte is shown.
 */
export class TierSource implements Source {
  readonly name: string

  constructor(private readonly parts: TierSourceParts) {
    this.name = parts.name ?? usualName
  }

  async open(wanted: Wanted, ending: AnySignal): Promise<Found | Refusal> {
    const signal = signalOf(ending)
    if (wanted.avoid.has(this.name) || wanted.needsPlace === true) return unknownEverywhere()
    const place = this.parts.packed(wanted.id)
    const found =
      place === undefined ? await this.#object(wanted, signal) : await this.#packed(place, wanted, signal)
    if (isRefusal(found)) this.parts.read(outcomeOf(found))
    return found
  }

  async #packed(place: StoredPlace, wanted: Wanted, signal: AbortSignal): Promise<Found | Refusal> {
    const { store, keys, wrong } = this.parts
    const { offset, sizeBytes, dataStart, root } = place
    const hints = root === undefined ? {} : hintsOf(root.id, root.itemOffset, dataStart, sizeBytes)
    const described = { sizeBytes, dataStart, contentType: place.contentType || undefined, hints }
    const cut = cutOf(described, wanted.window)
    if (isRefusal(cut)) return cut
    if (cut.end < cut.start) return this.#found(wanted, described, undefined, place.pack)
    const window = { start: offset + cut.start, end: offset + cut.end }
    const object = namedObject(place.pack)
    const key = object === undefined ? keys.pack(place.pack) : keys.object(object)
    const found = await store.get(key, window, { client: wanted.client, signal })
    if (!isRefusal(found)) return this.#found(wanted, described, found, place.pack)
    if (found.refused === 'unknown' || found.refused === 'unsatisfiable') {
      wrong(wanted.id, place.pack, found.refused === 'unknown')
      return unknownEverywhere()
    }
    return found
  }

  async #object(wanted: Wanted, signal: AbortSignal): Promise<Found | Refusal> {
    const { store, keys } = this.parts
    const requester = { client: wanted.client, signal }
    const key = keys.object(wanted.id)
    if (wanted.window === undefined) {
      const found = await store.get(key, undefined, requester)
      return isRefusal(found) ? found : this.#found(wanted, describe(found), found, undefined)
    }
    // Where the payload begins is not known before: so much more is requested that it is within what comes.
    const { start, end } = wanted.window
    const wide = await store.get(key, { start, end: end + headerUsualBytes }, requester)
    if (isRefusal(wide)) return wide
    const described = describe(wide)
    const cut = cutOf(described, wanted.window)
    if (isRefusal(cut) || wide.part === undefined) {
      wide.drop()
      return isRefusal(cut) ? cut : refuse('upstream', 'upstream', 'the object store sent no part')
    }
    const from = cut.start - start
    if (cut.end <= wide.part.end) {
      const body = cutPieces(wide.body, from, cut.end - start + 1, 'read')
      return this.#found(wanted, described, { ...wide, body }, undefined)
    }
    wide.drop()
    const found = await store.get(key, cut, requester)
    return isRefusal(found) ? found : this.#found(wanted, described, found, undefined)
  }

  /**
   * `opened`: the object from its first byte on, or the window of its payload; absent: the payload is empty. `pack`: as in
   * `wrong`.
   */
  async #found(
    wanted: Wanted,
    { sizeBytes, dataStart, contentType, hints }: Described,
    opened: ObjectBody | undefined,
    pack: string | undefined,
  ): Promise<Found | Refusal> {
    if (dataStart > sizeBytes) {
      opened?.drop()
      return refuse(
        'upstream',
        'upstream',
        'an object of the store says that its payload begins behind its end',
      )
    }
    const isWhole = wanted.window === undefined && dataStart > 0
    const pieces = isWhole ? opened?.body[Symbol.asyncIterator]() : undefined
    const item = pieces === undefined ? undefined : await readHeader(pieces, wanted.id, dataStart)
    if (isRefusal(item)) return this.#doubted(wanted.id, pack, item)
    this.parts.read(pack === undefined ? 'object' : 'packed')
    const learned: Learned =
      item === undefined
        ? contentType === undefined
          ? {}
          : { contentType }
        : headersOfPayload(item.header.tags)
    return {
      name: this.name,
      origin: this.name,
      sizeBytes: sizeBytes - dataStart,
      body:
        item === undefined ? (opened?.body ?? rest(undefined)) : this.#signed(wanted.id, pack, item, pieces),
      isLasting: true,
      trusted: false,
      proven: false,
      learned,
      hints,
    }
  }

  #doubted(id: Id, pack: string | undefined, refusal: Refusal): Refusal {
    if (refusal.refused === 'forged') {
      this.parts.read('forged')
      this.parts.wrong(id, pack, false)
    }
    return refusal
  }

  /** The payload of an item, with a refusal at its end unless its owner signed it. */
  async *#signed(
    id: Id,
    pack: string | undefined,
    { header, first }: ReadHeader,
    pieces: AsyncIterator<Uint8Array | Refusal> | undefined,
  ): AsyncGenerator<Uint8Array | Refusal, undefined> {
    const verifier = new ItemVerifier(header)
    if (first.length > 0) verifier.update(first)
    for await (const piece of rest(pieces, first)) {
      if (isRefusal(piece)) {
        yield piece
        return undefined
      }
      if (piece !== first) verifier.update(piece)
      yield piece
    }
    const held = verifier.finish()
    if (held !== true) yield this.#doubted(id, pack, held)
    return undefined
  }
}

interface ReadHeader {
  readonly header: ItemHeader
  /** What came of the payload already. */
  readonly first: Uint8Array
}

/** Reads the first `dataStart` bytes of an object: the header of the item `id`. A refusal (`forged`): they are something else. */
async function readHeader(
  pieces: AsyncIterator<Uint8Array | Refusal>,
  id: Id,
  dataStart: number,
): Promise<ReadHeader | Refusal> {
  const gathered = new Gathered(dataStart)
  const forged = refuse('forged', 'upstream', `the object store has something else than ${id}`)
  while (gathered.sizeBytes < dataStart && dataStart <= itemHeaderSizeMax()) {
    const step = await pieces.next()
    if (step.done === true) return refuse('upstream', 'upstream', 'the object store broke off')
    if (isRefusal(step.value)) return step.value
    gathered.add(step.value)
  }
  const bytes = gathered.bytes()
  const header = bytes.length < dataStart ? undefined : parseItemHeader(bytes.subarray(0, dataStart))
  const isOwn = typeof header === 'object' && !isRefusal(header) && header.id === id
  if (isOwn && header.headerSize === dataStart) return { header, first: bytes.subarray(dataStart) }
  await pieces.return?.()
  return forged
}

/** What is left of a body, behind `first`. Ends the body when it is left early. */
async function* rest(
  pieces: AsyncIterator<Uint8Array | Refusal> | undefined,
  first?: Uint8Array,
): AsyncGenerator<Uint8Array | Refusal, undefined> {
  if (pieces === undefined) return undefined
  let isOver = false
  try {
    if (first !== undefined && first.length > 0) yield first
    for (;;) {
      const step = await pieces.next()
      isOver = step.done === true
      if (isOver) return undefined
      yield step.value
    }
  } finally {
    if (!isOver) await pieces.return?.()
  }
}

function outcomeOf({ refused }: Refusal): ReadOutcome {
  return refused === 'unknown' || refused === 'unsatisfiable' ? 'absent' : 'failed'
}

function hintsOf(rootId: Id, itemOffset: number, dataStart: number, sizeBytes: number): Hints {
  return dataStart === 0 ? { rootId } : { rootId, itemOffset, itemSize: sizeBytes }
}

function count(text: string | undefined): number | undefined {
  const value = text !== undefined && /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  return Number.isSafeInteger(value) ? value : undefined
}

function describe({ sizeBytes, contentType, metadata }: ObjectHead): Described {
  const dataStart = count(metadata[objectMetadata.dataStart]) ?? 0
  const declared = metadata[objectMetadata.contentType] ?? contentType
  const isType = declared !== undefined && /^[\x20-\x7e]{1,255}$/.test(declared) && !untyped.test(declared)
  const rootId = parseId(metadata[objectMetadata.rootId] ?? '')
  const itemOffset = count(metadata[objectMetadata.rootItemOffset])
  const hints =
    rootId === undefined || itemOffset === undefined ? {} : hintsOf(rootId, itemOffset, dataStart, sizeBytes)
  return { sizeBytes, dataStart, contentType: isType ? declared : undefined, hints }
}

/** The bytes of the object to ask for: all of it, or a window of its payload. */
function cutOf({ sizeBytes, dataStart }: Described, window: Window | undefined): Window | Refusal {
  if (window === undefined) return { start: 0, end: sizeBytes - 1 }
  const end = dataStart + window.end
  if (end < sizeBytes) return { start: dataStart + window.start, end }
  return refuse('unsatisfiable', 'client', 'the range is outside of the content')
}
