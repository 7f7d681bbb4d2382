import type { ItemFilter } from '../../config/item-filter.js'
import type { CatalogRequest } from '../catalog/catalog-messages.js'
import { packJudged } from '../catalog/judged-items.js'
import { RowPacker } from '../catalog/pack.js'
import { headerMemory } from '../format/header-memory.js'
import { type Id, idBytes } from '../format/id.js'
import type { Refusal } from '../format/refusal.js'
import { type FoundItem, itemSubject, packFound, packItem } from './chain-rows.js'
import { matches } from './filter.js'
import type { HeldItems } from './held-items.js'
import type { IndexQueue } from './index-queue.js'
import type { ItemJudge, SignedMessage } from './item-judge.js'
import { indexedEvent } from './webhook-events.js'
import type { Webhooks } from './webhooks.js'

/**
 * Items, and bytes of memory that their headers take, after which a message is sent; the last piece of bytes may add more. The
 * message takes at most three times these bytes while it is packed.
 */
const [itemsMax, memoryMaxBytes] = [1000, 8 * 2 ** 20]

/** Messages of at most so many items are short (`IndexQueue`). */
const shortMax = 50

interface UnjudgedItem {
  readonly item: FoundItem
  /** Absent where the signature is not verified. */
  readonly message: Uint8Array | undefined
}

function signedMessage({ item, message }: UnjudgedItem): SignedMessage {
  const { id, signatureType, owner, signature } = item.header
  if (message === undefined) throw new Error('what an item signs was not worked out')
  // Copies: of a view, a message between threads carries the whole buffer, which is the header with all its tags.
  return { id, signatureType, owner: owner.slice(), signature: signature.slice(), message }
}

/** The items in their order, cut where a message has enough. */
function* portions(items: readonly FoundItem[]): Generator<readonly FoundItem[], void> {
  let [from, bytes] = [0, 0]
  for (const [at, { header }] of items.entries()) {
    bytes += headerMemory(header)
    if (at + 1 - from < itemsMax && bytes < memoryMaxBytes) continue
    yield items.slice(from, at + 1)
    from = at + 1
    bytes = 0
  }
  if (from < items.length) yield items.slice(from)
}

function judgedIn(bundle: Uint8Array, items: readonly FoundItem[]): CatalogRequest {
  const judged = items.flatMap(({ header: { id }, place, digest }) =>
    digest === undefined ? [] : [{ id, place, digest }],
  )
  return { kind: 'judged', bundle, items: packJudged(bundle, judged) }
}

export interface BatchObserver {
  /** Signed by its owner. */
  sound(item: FoundItem): void
  /** Not signed by its owner. */
  bad(id: Id, refusal: Refusal): void
  /** So many items were new to the index. */
  onAdded(added: number): void
}

/** A root that is opened. */
export interface OpenedRoot {
  readonly id: Id
  /** SHA-256 of its data, where that lies in the store and its items are verified: the catalog records what was judged in it. */
  readonly digest: Uint8Array | undefined
}

/** Whether a root is in a block of the index. */
export function isRootKnown({ index }: IndexQueue, id: Id): boolean {
  index.refresh()
  return index.row(idBytes(id), false)?.height !== undefined
}

/** Collects items of one root, verifies them in batches, and sends them to the catalog. */
export class ItemBatch {
  #items: UnjudgedItem[] = []
  #memoryBytes = 0
  /**
   * Where items are not verified, filtered or announced, each is packed at once: holding them as objects would take
   * far more memory.
   */
  #packed: { readonly rows: RowPacker; count: number } | undefined
  /** Batches are judged at once, and settled one after the other. */
  #settling: Promise<void> = Promise.resolve()

  constructor(
    private readonly root: OpenedRoot,
    private readonly queue: IndexQueue,
    private readonly judge: Pick<ItemJudge, 'judge'> | undefined,
    private readonly wanted: ItemFilter,
    private readonly observer: BatchObserver,
    private readonly held: HeldItems,
    private readonly webhooks?: Webhooks,
  ) {}

  get isFull(): boolean {
    const count = Math.max(this.#items.length, this.#packed?.count ?? 0)
    return count >= itemsMax || this.#memoryBytes >= memoryMaxBytes
  }

  /** About what the headers of the items take that were added since the last `flush`. */
  get memoryBytes(): number {
    return this.#memoryBytes
  }

  add(item: FoundItem, message: Uint8Array | undefined): void {
    const { judge, wanted, webhooks } = this
    this.#memoryBytes += headerMemory(item.header)
    if (judge !== undefined || wanted.kind !== 'always' || webhooks !== undefined) {
      this.#items.push({ item, message })
      return
    }
    this.#packed ??= { rows: new RowPacker(), count: 0 }
    packItem(this.#packed.rows, item)
    this.#packed.count += 1
    this.observer.sound(item)
  }

  /**
   * Reports what was added and is by its owners and wanted; nothing of it where the root is in no block any more. Items may be
   * added meanwhile: they are of the next batch.
   */
  async flush(): Promise<void> {
    const [packed, count = 0] = [this.#packed?.rows.take(), this.#packed?.count]
    this.#packed = undefined
    this.#memoryBytes = 0
    if (packed !== undefined) await this.#index([], count, () => packed)
    const unjudged = this.#items
    if (unjudged.length === 0) return
    this.#items = []
    const judging = this.judge?.judge(unjudged.map(signedMessage))
    const before = this.#settling
    const settled = (async () => {
      const verdicts = await judging
      await before
      return this.#settled(unjudged, verdicts)
    })()
    this.#settling = settled.then(() => undefined)
    this.#settling.catch(() => 'thrown where it is awaited')
    const items = await settled
    for (const some of portions(items)) {
      await this.#index(some, some.length, () => packFound(some))
      if (this.judge !== undefined) this.held.left(some)
    }
  }

  /** Items that may be indexed now. Without verdicts all are believed. */
  #settled(
    unjudged: readonly UnjudgedItem[],
    verdicts: readonly (true | Refusal)[] | undefined,
  ): FoundItem[] {
    return unjudged.flatMap(({ item }, at) => {
      const verdict = this.judge === undefined ? true : verdicts?.[at]
      if (verdict === undefined) throw new Error('a signature was not judged')
      if (verdict !== true) this.observer.bad(item.header.id, verdict)
      else this.observer.sound(item)
      const isSigned = verdict === true
      // Usually the filter takes everything; then the object for the filter is not made.
      const isWanted = this.wanted.kind === 'always' || (isSigned && matches(this.wanted, itemSubject(item)))
      if (this.judge === undefined) return isWanted ? [item] : []
      return this.held.take(item, isSigned, isWanted)
    })
  }

  /** Indexes so many packed items; `items` are those that receivers of webhooks may get. */
  async #index(items: readonly FoundItem[], count: number, pack: () => Uint8Array): Promise<void> {
    const outcome = await this.queue.write(
      () => {
        const { id, digest } = this.root
        const row = this.queue.index.row(idBytes(id), false)
        if (row?.height === undefined) return undefined
        this.#announce(items, row.height)
        const isUnjudged = this.judge === undefined
        const indexing: CatalogRequest = { kind: 'index-items', rootId: id, items: pack(), isUnjudged }
        if (digest === undefined) return indexing
        return { kind: 'all', requests: [indexing, judgedIn(digest, items)] }
      },
      count > shortMax ? 'long' : 'short',
    )
    this.observer.onAdded(outcome?.added ?? 0)
  }

  /** Notifies receivers of items that are new to the index. */
  #announce(items: readonly FoundItem[], height: number): void {
    const { webhooks, queue } = this
    if (webhooks === undefined) return
    const fresh = items.filter(
      ({ header }) => queue.index.row(idBytes(header.id), false)?.height === undefined,
    )
    const wanted = fresh.map(itemSubject).filter((subject) => matches(webhooks.options.index, subject))
    webhooks.announce(wanted.map((subject) => indexedEvent(subject, height)))
  }
}
