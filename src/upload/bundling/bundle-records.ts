import { type Id, idBytes } from '../../format/id.js'
import { readJsonRow } from '../../store/json-row.js'
import type { Environment, Table } from '../../store/lmdb.js'
import { isSamePlace } from '../../store/segments/log-file.js'
import type { AcceptedItem, Uploads } from '../records/uploads.js'
import { BundleLists, recentMax } from './bundle-lists.js'

/**
 * A transaction that carries items:
 *
 *                   +-- data missing --+
 *                   v                  |
 *     packed --> posted ----------> seeded --> permanent, when nodes have shown the data
 *        |          |                  |
 *        +----------+------------------+-----> dropped, and its items wait for another
 */
export interface BundleRecord {
  readonly id: Id
  readonly state: 'packed' | 'posted' | 'seeded' | 'permanent' | 'dropped'
  /** The transaction as nodes take it, without data. */
  readonly transaction: object
  /** Bytes of the data: header and items. */
  readonly sizeBytes: number
  /** In the order in which they lie in it. */
  readonly items: readonly Id[]
  /** A height that the chain had when its anchor was taken: this is good for some 50 blocks from there. */
  readonly anchorHeight: number
  readonly createdMs: number
  /** Failures of the present step. */
  readonly attempts: number
  /** Not looked at before. */
  readonly dueMs: number
  /** Why the last step failed, or why it was dropped. */
  readonly reason?: string
  /** Block that holds it. */
  readonly height?: number
  /** Names of the nodes that took chunks of it. */
  readonly takenBy?: readonly string[]
  /** Looks in a row at which no node showed its data, though it was deep enough. */
  readonly unseen?: number
  /** Why it is not permanent, though it is deep enough. */
  readonly unshown?: Unshown
  /** Numbers of the chunks that are to be sent again; absent: all, or none. At most as many as are read back of a bundle. */
  readonly missing?: readonly number[]
  /** Where not all of them were sent: those before this one were. */
  readonly resentTo?: number
  /** Nodes have shown its data. */
  readonly isSeen?: true
  /** Permanent, and the bytes of its items are not kept here any more. */
  readonly released?: true
}

/**
 * Nodes deny that they have some of its data (`missing`), do not answer (`silent`), or do not take what is sent again
 * (`untaken`).
 */
export const unshownReasons = ['missing', 'silent', 'untaken'] as const
export type Unshown = (typeof unshownReasons)[number]

/** A record without what only the bundler needs; `items`: how many. */
export type BundleSummary = Omit<BundleRecord, 'transaction' | 'items'> & { readonly items: number }

/** A bundle for lists: the number of its items in place of their ids. */
export function summaryOf({ transaction: _, items, ...record }: BundleRecord): BundleSummary {
  return { ...record, items: items.length }
}

/**
 * Bundles with an item in them that were given up, after which the item is. The bundler pauses for longer after each of them, so
 * this takes more than half a day: what is wrong (anchor, price, nodes) is seldom about the items.
 */
const failuresMax = 30

/** Transactions of the upload service, on disk. */
export class Bundles {
  readonly #table: Table
  /**
   * Those with which something may still be to be done: the others are as many as there ever were. Hundreds may wait for their
   * depth, each with ten thousand items, so their items are left on disk.
   */
  readonly #open = new Map<Id, BundleSummary>()
  readonly #lists: BundleLists
  #recent: readonly BundleSummary[] = []

  constructor(
    private readonly environment: Environment,
    private readonly uploads: Uploads,
  ) {
    this.#table = environment.table('bundles')
    this.#lists = new BundleLists(environment)
    const listed = this.#lists.ids(this.#table.count())
    if (listed === undefined) this.#listAll()
    else for (const id of listed) this.#note(this.known(id))
  }

  /** An older release did not list them. */
  #listAll(): void {
    for (const { value } of this.#table.span({})) this.#note(read(value))
    const { environment } = this
    environment.write(() =>
      this.#lists.replace(
        this.#open.keys(),
        this.#recent.map(({ id }) => id),
        this.#table.count(),
      ),
    )
  }

  /** What was written is known without reading all records again: some have ten thousand items. */
  #note(record: BundleRecord): void {
    const summary = summaryOf(record)
    if (isOpen(record)) this.#open.set(record.id, summary)
    else this.#open.delete(record.id)
    this.#recent = this.#recentWith(summary)
  }

  #recentWith(summary: BundleSummary): readonly BundleSummary[] {
    const others = this.#recent.filter(({ id }) => id !== summary.id)
    const all = [...others, summary].sort((one, other) => other.createdMs - one.createdMs)
    return all.slice(0, recentMax)
  }

  find(id: Id): BundleRecord | undefined {
    const found = this.#table.get(idBytes(id))
    return found === undefined ? undefined : read(found)
  }

  /** The same of one that is there. */
  known(id: Id): BundleRecord {
    const bundle = this.find(id)
    if (bundle === undefined) throw new Error(`the record of the bundle ${id} is gone`)
    return bundle
  }

  /** Those with which something is still to be done: not dropped, and their items are kept here. */
  open(): BundleSummary[] {
    return [...this.#open.values()]
  }

  /** Those that are deep enough in the chain, and wait for nodes to show their data. */
  unshown(): BundleSummary[] {
    return this.open().filter(({ unshown, height }) => unshown !== undefined && height !== undefined)
  }

  /** Undefined: it is not open. */
  stateOf(id: Id): BundleSummary['state'] | undefined {
    return this.#open.get(id)?.state
  }

  /** It is not looked at before. In memory alone: a restart looks at once. */
  delay(id: Id, dueMs: number): void {
    const known = this.#open.get(id)
    if (known !== undefined) this.#open.set(id, { ...known, dueMs })
  }

  /** The youngest first. */
  get recent(): readonly BundleSummary[] {
    return this.#recent
  }

  put(record: BundleRecord): void {
    this.#write(record)
  }

  /**
   * The items are in this bundle from now on. `offsets`: where each begins in its data. False, and nothing is written: one of
   * them is in another place now, or waits no more, as it took time to make the bundle.
   */
  pack(record: BundleRecord, items: readonly AcceptedItem[], offsets: readonly number[]): boolean {
    const isWritten = this.environment.write(() => {
      const rows = items.map((item) => waitingRow(this.uploads.find(item.id), item))
      if (!rows.every((row) => row !== undefined)) return false
      this.#put(record)
      for (const [at, row] of rows.entries()) {
        this.uploads.unqueue(row)
        this.uploads.put({ ...row, bundle: record.id, offset: offsets[at] ?? 0 })
      }
      return true
    })
    if (isWritten) this.#note(record)
    return isWritten
  }

  /**
   * It will never be mined: its items wait for another. Returns how many have failed too often, and are given up, and the items
   * that are left to another machine, whose bytes are not needed here any more. `counts`: false where the reason cannot be the
   * items.
   */
  drop(record: BundleRecord, reason: string, counts = true): { givenUp: number; left: AcceptedItem[] } {
    let givenUp = 0
    const items = this.#itemsOf(record)
    const left = items.filter(({ isTakenOver, released }) => isTakenOver === true && released !== true)
    this.#write({ ...record, state: 'dropped', reason }, () => {
      for (const item of items) {
        const { bundle: _, offset: __, permanent: ___, ...freed } = item
        const failures = (item.failures ?? 0) + (counts ? 1 : 0)
        if (item.isTakenOver === true) this.uploads.leave(freed)
        else if (counts && failures >= failuresMax) {
          this.uploads.put({ ...freed, failures, reason })
          givenUp += 1
        } else {
          this.uploads.put({ ...freed, failures })
          this.uploads.requeue(item)
        }
      }
    })
    return { givenUp, left }
  }

  /** It is deep enough in the chain. Returns how many items it has. */
  markPermanent(record: BundleRecord, height: number): number {
    const items = this.#itemsOf(record)
    this.#write({ ...record, state: 'permanent', height }, () => {
      for (const item of items) this.uploads.put({ ...item, permanent: height })
    })
    // Nobody needs its bytes from here any more.
    for (const { id } of items) this.uploads.unreadable.remove(id)
    return items.length
  }

  /** Returns its items, whose bytes are not needed here any more. */
  release(record: BundleRecord): AcceptedItem[] {
    const items = this.#itemsOf(record).filter((item) => item.released !== true)
    this.#write({ ...record, released: true }, () => {
      for (const item of items) this.uploads.release(item)
    })
    for (const { id } of items) this.uploads.unreadable.remove(id)
    return items
  }

  /** Those of its items that are still its own. */
  #itemsOf(record: BundleRecord): AcceptedItem[] {
    return record.items.flatMap((id) => {
      const item = this.uploads.find(id)
      return item?.bundle === record.id ? [item] : []
    })
  }

  /** Only inside a `write`. */
  #put(record: BundleRecord): void {
    const key = idBytes(record.id)
    const isNew = this.#table.get(key) === undefined
    this.#table.put(key, Buffer.from(JSON.stringify(record)))
    this.#lists.put('open', record.id, isOpen(record))
    if (!isNew) return
    const recent = new Set(this.#recentWith(summaryOf(record)).map(({ id }) => id))
    for (const { id } of this.#recent) if (!recent.has(id)) this.#lists.put('recent', id, false)
    this.#lists.put('recent', record.id, recent.has(record.id))
    this.#lists.add()
  }

  /** In one transaction with `more`; known when that is through. */
  #write(record: BundleRecord, more: () => void = () => undefined): void {
    this.environment.write(() => {
      this.#put(record)
      more()
    })
    this.#note(record)
  }
}

/** What the health check says of bundles that wait for nodes to show their data. */
export function unseenWarnings(bundles: Pick<Bundles, 'unshown'>): string[] {
  const waiting = bundles.unshown()
  if (waiting.length === 0) return []
  const counts = unshownReasons.map(
    (why) => `${waiting.filter(({ unshown }) => unshown === why).length} ${why}`,
  )
  return [
    `${waiting.length} bundles are deep in the chain, and nodes do not show their data: ${counts.join(', ')}`,
  ]
}

/** A waiting item as it is now, where the same bytes of it still wait. */
function waitingRow(now: AcceptedItem | undefined, item: AcceptedItem): AcceptedItem | undefined {
  const waits =
    now !== undefined && now.bundle === undefined && now.released !== true && now.reason === undefined
  return waits && isSamePlace(now.place, item.place) ? now : undefined
}

/** What a bundle pays, in winston. */
export function rewardOf({ transaction }: Pick<BundleRecord, 'transaction'>): bigint {
  return BigInt((transaction as { readonly reward: string }).reward)
}

function isOpen({ state, released }: BundleRecord): boolean {
  return state !== 'dropped' && released !== true
}

function read(value: Uint8Array): BundleRecord {
  return readJsonRow(value, 'uploads/data.mdb: a row about a bundle') as BundleRecord
}
