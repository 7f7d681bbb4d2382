import { standardTagLimits } from '../format/avro-tags.js'
import { bundleCountSize } from '../format/bundle.js'
import { type BundleEvent, BundleReader } from '../format/bundle-reader.js'
import type { Id } from '../format/id.js'
import type { ReadingPlace } from '../format/reading-place.js'
import { type Refusal, refuse } from '../format/refusal.js'
import { type RunningDigest, runningSha256 } from '../proof/digest.js'
import { ItemVerifier } from '../proof/item-verifier.js'
import type { FoundItem } from './chain-rows.js'

/** The bytes of one bundle: a transaction's data, or the payload of an item in it. */
export interface BundleStretch {
  /** Root first, the bundle itself last. */
  readonly path: readonly [Id, ...Id[]]
  /** Where it begins in the root's data. */
  readonly start: number
  readonly sizeBytes: number
  /** Absent: all of it is read. Else its bytes are those of `spansFrom` with this place and so many entries. */
  readonly part?: { readonly from: ReadingPlace; readonly entriesMax: number } | undefined
}

export interface WalkRules {
  /** Bundles inside bundles are opened so deep; the root counts as 1. */
  readonly depthMax: number
  /** Entries of all bundles that are open at once: they are held in memory. */
  readonly entriesMax: number
  /** Whether what each item signs is worked out: every byte is hashed for it. */
  readonly signed: boolean
  /** Whether the SHA-256 of each payload is worked out. */
  readonly digested?: boolean
  /** Whether this item is a bundle to be opened. */
  opens(item: FoundItem): boolean
}

/** Receives what a walk finds. Items of a bundle come before the bundle itself. */
export interface WalkObserver {
  /** An item whose id is the hash of its signature; `message` is what its owner must have signed (of `signed` walks). */
  item(item: FoundItem, message: Uint8Array | undefined): void
  /** Not an item. */
  bad(id: Id, refusal: Refusal): void
  /** A bundle inside that could not be read to its end. */
  broken(id: Id, refusal: Refusal): void
}

/**
 * Reads a bundle and the bundles in it in one pass over their bytes: holds tables of entries and one item's header a
 * level, and no payload. A bad item is reported and skipped. Signatures are not verified here, but the messages that
 * they sign are computed. A nested item is verified on its own, because it is signed by its own owner.
 */
export class BundleWalk {
  readonly #reader: BundleReader
  #entries = 0
  #current:
    | {
        readonly item: FoundItem
        readonly verifier: ItemVerifier | undefined
        readonly hash: RunningDigest | undefined
        readonly inner?: BundleWalk
      }
    | undefined
  #refusal: Refusal | undefined

  constructor(
    private readonly stretch: BundleStretch,
    private readonly rules: WalkRules,
    private readonly observer: WalkObserver,
  ) {
    const { sizeBytes, part } = stretch
    const limits = { itemsMax: part?.entriesMax ?? rules.entriesMax, sizeBytes }
    this.#reader = new BundleReader(limits, standardTagLimits, part?.from)
  }

  /** Where the item of the outermost bundle begins that is being read: all before it were reported. */
  get place(): ReadingPlace | undefined {
    return this.#reader.place
  }

  /** Whether all items have passed of which there are entries. */
  get isDone(): boolean {
    return this.#reader.isDone
  }

  /** Whether nothing more can be read of the outermost bundle. */
  get isBroken(): boolean {
    return this.#reader.isBroken
  }

  /** Takes the next bytes. */
  push(bytes: Uint8Array): void {
    for (const event of this.#reader.push(bytes)) this.#take(event)
  }

  /** After the last bytes: why the bundle could not be read to its end, if it could not. */
  end(): Refusal | undefined {
    for (const event of this.#reader.end()) this.#take(event)
    return this.#refusal
  }

  #take(event: BundleEvent): void {
    if (event.kind === 'payload') {
      this.#current?.verifier?.update(event.bytes)
      this.#current?.hash?.update(event.bytes)
      this.#current?.inner?.push(event.bytes)
    } else if (event.kind === 'header') this.#begin(event)
    else if (event.kind === 'end') this.#finish()
    else if (event.kind === 'entries') this.#entries = this.stretch.part?.from.count ?? event.count
    else if (event.kind === 'bad') this.observer.bad(event.entry.id, event.refusal)
    else if (event.kind === 'broken') this.#refusal = event.refusal
  }

  #begin({ entry, header }: Extract<BundleEvent, { kind: 'header' }>): void {
    const { path, start } = this.stretch
    const item: FoundItem = {
      header,
      place: {
        rootId: path[0],
        parentId: path.at(-1) ?? path[0],
        path,
        rootItemOffset: start + entry.offset,
        parentItemOffset: entry.offset,
        itemSize: entry.sizeBytes,
        headerSize: header.headerSize,
      },
    }
    const verifier = this.rules.signed ? new ItemVerifier(header) : undefined
    const hash = this.rules.digested === true ? runningSha256() : undefined
    const sizeBytes = entry.sizeBytes - header.headerSize
    if (sizeBytes < bundleCountSize || !this.rules.opens(item)) {
      this.#current = { item, verifier, hash }
      return
    }
    if (path.length >= this.rules.depthMax) {
      const deep = refuse(
        'too-large',
        'upstream',
        `bundles inside bundles more than ${this.rules.depthMax} deep`,
      )
      this.observer.broken(header.id, deep)
      this.#current = { item, verifier, hash }
      return
    }
    const stretch: BundleStretch = {
      path: [...path, header.id],
      start: start + entry.offset + header.headerSize,
      sizeBytes,
    }
    const entriesMax = Math.max(this.rules.entriesMax - this.#entries, 0)
    const inner = new BundleWalk(
      stretch,
      { ...this.rules, entriesMax, opens: this.rules.opens },
      this.observer,
    )
    this.#current = { item, verifier, hash, inner }
  }

  #finish(): void {
    if (this.#current === undefined) return
    const { item, verifier, hash, inner } = this.#current
    this.#current = undefined
    const broken = inner?.end()
    if (broken !== undefined) this.observer.broken(item.header.id, broken)
    const found = hash === undefined ? item : { ...item, digest: hash.digest() }
    this.observer.item(found, verifier?.message())
  }
}
