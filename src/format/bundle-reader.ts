import { standardTagLimits, type TagLimits } from './avro-tags.js'
import {
  type BundleEntry,
  type BundleLimits,
  BundleTable,
  bundleCountSize,
  bundleEntrySize,
  readBundleCount,
  standardBundleLimits,
} from './bundle.js'
import { type ItemHeader, itemHeaderSizeMax, parseItemHeader } from './item.js'
import { partEnd, type ReadingPlace } from './reading-place.js'
import { isRefusal, type Refusal, refuse } from './refusal.js'

/**
 * Events while a bundle is read, in this order: `entries`; for each item `header`, any number of `payload`, `end`, or
 * else `bad`; then `done`. `broken` ends the sequence at any point.
 */
export type BundleEvent =
  /** The bundle's header is read: it has so many entries. */
  | { readonly kind: 'entries'; readonly count: number; readonly headerSize: number }
  /** An item's header is read, and its signature is the one its entry names. */
  | {
      readonly kind: 'header'
      readonly index: number
      readonly entry: BundleEntry
      readonly header: ItemHeader
    }
  /** The next bytes of its payload: a view of the piece that was pushed, valid until the next event. */
  | { readonly kind: 'payload'; readonly index: number; readonly bytes: Uint8Array }
  | { readonly kind: 'end'; readonly index: number }
  /**
   * An entry whose bytes are no valid item (malformed header, another id, cut off). Its bytes are skipped, and the
   * next item follows.
   */
  | { readonly kind: 'bad'; readonly index: number; readonly entry: BundleEntry; readonly refusal: Refusal }
  /** All items have passed. */
  | { readonly kind: 'done' }
  /** Nothing more can be read. */
  | { readonly kind: 'broken'; readonly refusal: Refusal }

type State = 'count' | 'table' | 'item' | 'payload' | 'skip' | 'done' | 'broken'

function malformed(message: string): Refusal {
  return refuse('malformed', 'upstream', `bundle: ${message}`)
}

/**
 * Reads a bundle from pieces of any length. Memory is the table of entries and at most one item's header; payloads are
 * handed on as they come. Signatures are not checked here (proof/item-verifier.ts), only that each item has the id of its entry.
 *
 * Each `push` gives its events one by one and must be run to its end before the next; a bundle inside an item is read by
 * feeding that item's payload to another reader.
 */
export class BundleReader {
  #state: State = 'count'
  #running = false
  readonly #limits: BundleLimits
  readonly #tagLimits: TagLimits
  readonly #headerSizeMax: number
  /** Entries that are read, and the number of the first of them. */
  #count = 0
  #first = 0
  #table = new BundleTable(0)
  /** Number of the current item, and where it begins. */
  #index = 0
  #offset = 0
  /** The current item; undefined behind the last one. */
  #entry: BundleEntry | undefined
  /** Bytes of the current item not yet taken. */
  #rest = 0
  /** Bytes kept from earlier pieces: the beginning of a header or an entry that is not complete yet. */
  #held = Buffer.alloc(0)
  #heldSize = 0

  /** `from`: the bytes are those of `spansFrom` with `limits.itemsMax` entries. */
  constructor(
    limits: BundleLimits = standardBundleLimits,
    tagLimits: TagLimits = standardTagLimits,
    private readonly from?: ReadingPlace,
  ) {
    this.#limits = limits
    this.#tagLimits = tagLimits
    this.#headerSizeMax = itemHeaderSizeMax(tagLimits)
    if (from === undefined) return
    this.#first = from.index
    this.#count = partEnd(from, limits.itemsMax) - from.index
    this.#table = new BundleTable(this.#count)
    this.#state = 'table'
  }

  /** Where the item begins that is being read; undefined before the first one. */
  get place(): ReadingPlace | undefined {
    if (this.#state === 'count' || this.#state === 'table') return undefined
    return { count: this.from?.count ?? this.#count, index: this.#index, offset: this.#offset }
  }

  /** Whether all items have passed of which there are entries. */
  get isDone(): boolean {
    return this.#state === 'done'
  }

  /** Whether nothing more can be read. */
  get isBroken(): boolean {
    return this.#state === 'broken'
  }

  /** What it takes: the table, and the beginning of a header or an entry. */
  get memoryBytes(): number {
    return this.#table.memoryBytes + this.#held.length
  }

  /** Takes the next piece. Bytes of `payload` events are views of it. */
  *push(piece: Uint8Array): Generator<BundleEvent, void, void> {
    if (this.#running) throw new Error('the events of the piece before were not read to their end')
    this.#running = true
    let at = 0
    while (at < piece.length && this.#state !== 'broken') {
      if (this.#state === 'done') {
        if (this.#isPart) break
        yield this.#break('bytes behind the last item')
        break
      }
      at += yield* this.#take(piece.subarray(at))
    }
    this.#running = false
  }

  /** To be called after the last piece: gives `broken` where something is missing, and no event otherwise. */
  *end(): Generator<BundleEvent, void, void> {
    if (this.#state === 'done' || this.#state === 'broken') return
    const inside = this.#state === 'count' || this.#state === 'table' ? 'the header' : `item ${this.#index}`
    yield this.#break(`cut off in ${inside}`)
  }

  #break(message: string): BundleEvent {
    this.#state = 'broken'
    this.#drop()
    return { kind: 'broken', refusal: malformed(message) }
  }

  /** Items follow of which there are no entries. */
  get #isPart(): boolean {
    return this.from !== undefined && this.#first + this.#count < this.from.count
  }

  /** Handles the start of `bytes` (at least one byte) and returns how many bytes it took. */
  *#take(bytes: Uint8Array): Generator<BundleEvent, number, void> {
    if (this.#state === 'count') return yield* this.#takeCount(bytes)
    if (this.#state === 'table') return yield* this.#takeEntry(bytes)
    if (this.#state === 'item') return yield* this.#takeHeader(bytes)
    const taken = Math.min(bytes.length, this.#rest)
    this.#rest -= taken
    if (this.#state === 'payload') {
      yield { kind: 'payload', index: this.#index, bytes: bytes.subarray(0, taken) }
      if (this.#rest === 0) yield { kind: 'end', index: this.#index }
    }
    if (this.#rest === 0) yield* this.#startNext()
    return taken
  }

  *#startNext(): Generator<BundleEvent, void, void> {
    const { offset, sizeBytes } = this.#entry as BundleEntry
    yield* this.#startItem(this.#index + 1, offset + sizeBytes)
  }

  *#takeCount(bytes: Uint8Array): Generator<BundleEvent, number, void> {
    const taken = this.#hold(bytes, bundleCountSize)
    if (this.#heldSize < bundleCountSize) return taken
    const count = readBundleCount(this.#held, this.#limits)
    this.#drop()
    if (typeof count !== 'number') {
      this.#state = 'broken'
      yield { kind: 'broken', refusal: count }
      return taken
    }
    this.#count = count
    this.#table = new BundleTable(count)
    this.#state = 'table'
    if (count === 0) yield* this.#startItems()
    return taken
  }

  *#takeEntry(bytes: Uint8Array): Generator<BundleEvent, number, void> {
    const taken = this.#hold(bytes, bundleEntrySize)
    if (this.#heldSize < bundleEntrySize) return taken
    const refusal = this.#table.add(this.#held, 0)
    this.#drop()
    if (refusal !== undefined) {
      this.#state = 'broken'
      yield { kind: 'broken', refusal }
      return taken
    }
    if (this.#table.count === this.#count) yield* this.#startItems()
    return taken
  }

  *#startItems(): Generator<BundleEvent, void, void> {
    const { sizeBytes } = this.#limits
    const headerSize = bundleCountSize + this.#count * bundleEntrySize
    const offset = this.from?.offset ?? headerSize
    const end = offset + this.#table.end - headerSize
    if (sizeBytes !== undefined && end > sizeBytes) {
      yield this.#break(`the items end at ${end}, behind the bundle's ${sizeBytes} bytes`)
      return
    }
    yield { kind: 'entries', count: this.#count, headerSize }
    yield* this.#startItem(this.#first, offset)
  }

  /** Goes on to item `index`, which begins at `offset`, and skips entries with a size of 0. */
  *#startItem(index: number, offset: number): Generator<BundleEvent, void, void> {
    this.#state = 'item'
    this.#index = index
    this.#offset = offset
    for (;;) {
      const entry = this.#table.entry(this.#index - this.#first, offset)
      this.#entry = entry
      if (entry === undefined) {
        this.#state = 'done'
        yield { kind: 'done' }
        return
      }
      this.#rest = entry.sizeBytes
      if (this.#rest > 0) return
      yield { kind: 'bad', index: this.#index, entry, refusal: malformed(`item ${this.#index} has no bytes`) }
      this.#index++
    }
  }

  /** Reads the current item's header out of what is held and `bytes`, in place where all of it lies in `bytes`. */
  *#takeHeader(bytes: Uint8Array): Generator<BundleEvent, number, void> {
    const index = this.#index
    const entry = this.#entry as BundleEntry
    const before = this.#heldSize
    const within = bytes.subarray(0, Math.min(bytes.length, this.#rest, this.#headerSizeMax - before))
    let known = within
    if (before > 0) {
      this.#hold(within, before + within.length)
      known = this.#held.subarray(0, this.#heldSize)
    }
    const header = parseItemHeader(known, this.#tagLimits)
    if (header === 'more' && within.length < this.#rest) {
      if (before === 0) this.#hold(within, within.length)
      this.#rest -= within.length
      return within.length
    }
    this.#drop()
    const refusal = this.#judge(header, entry)
    if (refusal !== undefined || header === 'more' || isRefusal(header)) {
      yield { kind: 'bad', index, entry, refusal: refusal ?? malformed(`item ${index} cannot be read`) }
      this.#state = 'skip'
      return yield* this.#passOver(0)
    }
    yield { kind: 'header', index, entry, header }
    this.#state = 'payload'
    const taken = header.headerSize - before
    if (taken === this.#rest) yield { kind: 'end', index }
    return yield* this.#passOver(taken)
  }

  /** Counts `taken` bytes of the current item as read, and goes on to the next item where none is left. */
  *#passOver(taken: number): Generator<BundleEvent, number, void> {
    this.#rest -= taken
    if (this.#rest === 0) yield* this.#startNext()
    return taken
  }

  /** Why an item is bad, if it is. */
  #judge(header: ItemHeader | 'more' | Refusal, entry: BundleEntry): Refusal | undefined {
    if (header === 'more') return malformed(`item ${this.#index} ends in its header`)
    if (isRefusal(header)) return header
    if (header.id === entry.id) return undefined
    return malformed(`item ${this.#index} has the id ${header.id}, but its entry says ${entry.id}`)
  }

  /**
   * Keeps bytes until `wanted` are held; returns how many it took. The buffer doubles when it is full, so that a
   * bundle that arrives byte by byte is not copied again for each byte.
   */
  #hold(bytes: Uint8Array, wanted: number): number {
    const taken = Math.min(bytes.length, wanted - this.#heldSize)
    const size = this.#heldSize + taken
    if (size > this.#held.length) {
      const grown = Buffer.alloc(Math.max(size, 2 * this.#held.length, bundleEntrySize))
      this.#held.copy(grown, 0, 0, this.#heldSize)
      this.#held = grown
    }
    this.#held.set(bytes.subarray(0, taken), this.#heldSize)
    this.#heldSize = size
    return taken
  }

  #drop(): void {
    this.#heldSize = 0
  }
}
