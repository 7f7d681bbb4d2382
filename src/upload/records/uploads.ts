import { type Id, idBytes, idOfBytes } from '../../format/id.js'
import { readJsonRow } from '../../store/json-row.js'
import { type Environment, openEnvironment, type Table } from '../../store/lmdb.js'
import type { LogPlace } from '../../store/segments/log-file.js'
import type { FreeReservation } from './free-pools.js'
import { OpeningLines } from './opening-lines.js'
import { PendingItems } from './pending-items.js'
import type { PendingMarks } from './pending-marks.js'
import { ScannedIds } from './scanned-ids.js'
import { StoredRows } from './stored-rows.js'
import { UnlistedItems } from './unlisted-items.js'
import { UnreadableItems } from './unreadable-items.js'
import { WaitingLines } from './waiting-lines.js'

/** The record of an item in the log: enough to restore it when the tables were lost. */
export interface LoggedUpload {
  readonly id: Id
  /** Bytes in front of the payload. */
  readonly headerSize: number
  /** base64url SHA-256 of the owner's key. */
  readonly owner: string
  readonly receivedMs: number
  readonly deadlineHeight: number
  /** Charged, decimal. */
  readonly winc: string
  readonly contentType?: string
  /** SHA-256 of the payload, base64url; items of older releases have none. */
  readonly digest?: string
  /**
   * SHA-256 of the bytes in front of the payload and of the payload's SHA-256, base64url: what the log has as its digest. Items
   * of older releases have none.
   */
  readonly logDigest?: string
  /** It is a bundle by its tags. */
  readonly isBundle?: true
  /** How many items the header of a bundle names. */
  readonly itemsInside?: number
  /** It is accepted when this payment was settled, and not before. */
  readonly sale?: SaleFacts
  /** Name under which its price is reserved, where that is not its id: the upload in parts that was paid for. */
  readonly heldAs?: string
  /** What was taken of free bytes for it: in the log alone. */
  readonly free?: FreeReservation
}

/** The record in the log of the payment for an item that is paid for alone. */
export interface SaleFacts {
  readonly payment: string
  readonly units: string
  /** That were paid for. */
  readonly bytes: number
  readonly request: string
  readonly identifier?: string
  /** Digest of the signature (`signatureDigest`); absent in records of older releases. */
  readonly signed?: string
  readonly service?: string
}

/** What is kept of an item that was accepted. */
export interface AcceptedItem extends Omit<LoggedUpload, 'free'> {
  readonly place: LogPlace
  /** The group in the object store that has it, too. */
  readonly stored?: string
  /** Whose turn a free item waits for (`turnOf`). */
  readonly turn?: string
  /** The transaction that carries it, or carried it last. Absent: it waits for one. */
  readonly bundle?: Id
  /** Where it begins in that transaction's data. */
  readonly offset?: number
  /** Bundles with it that were given up. */
  readonly failures?: number
  /** Given up: why. */
  readonly reason?: string
  /** Height of the block that made it permanent. */
  readonly permanent?: number
  /** Its bytes are not kept here any more. */
  readonly released?: true
  /** Another machine has accepted it, too. When its bundle here comes to nothing, that machine posts it (`leave`). */
  readonly isTakenOver?: true
}

/** A sandbox kept it for its time: nothing of it is here or in a block any more, and it may be uploaded anew. */
export function isGone({ released, permanent, reason }: AcceptedItem): boolean {
  return released === true && permanent === undefined && reason !== undefined
}

const leftReason = 'Another machine of the cluster has taken it over'

/** It was left to another machine, which may be gone later. */
export function isLeftElsewhere(item: AcceptedItem): boolean {
  return isGone(item) && item.reason === leftReason
}

/** Bundles with it failed too often. It is still kept here, and may be tried again. */
export function isGivenUp({ released, permanent, reason }: AcceptedItem): boolean {
  return released !== true && permanent === undefined && reason !== undefined
}

/** Tables of the upload service. One thread writes; any thread may read. */
const tablesMax = 32

/** The environment of all tables of the upload service. Throws where it cannot be opened. */
export function openUploadTables(path: string): Environment {
  return openEnvironment(path, tablesMax)
}

const acceptedRow = 'uploads/data.mdb: a row about an accepted item'

/** Looks an accepted item up; for any thread. */
export function acceptedItem(items: Table, id: Id): AcceptedItem | undefined {
  const found = items.get(idBytes(id))
  return found === undefined ? undefined : (readJsonRow(found, acceptedRow) as AcceptedItem)
}

/** An item inside of an uploaded item that is a bundle. Its bytes are those of the bundle around it. */
export interface InnerItem {
  /** The uploaded item around it. */
  readonly parent: Id
  /** Where it begins in the bytes of that item, header included. */
  readonly start: number
  readonly sizeBytes: number
  readonly headerSize: number
  readonly contentType?: string
}

/** Looks an inner item up; for any thread. */
export function innerItem(inner: Table, id: Id): InnerItem | undefined {
  const found = inner.get(idBytes(id))
  return found === undefined
    ? undefined
    : (readJsonRow(found, 'uploads/data.mdb: a row about an inner item') as InnerItem)
}

const none = new Uint8Array(0)

function contentKey(owner: string, digest: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(owner, 'base64url'), digest])
}

/**
 * State of accepted items on disk. A kill may take back the last moments of it: what was accepted is in the log then, and
 * `openIntake` puts it here again.
 */
export class Uploads {
  /** The one that all use who write to these tables: each `write` writes pending items first, in the same transaction. */
  readonly environment: Environment
  /** What the object store has of it. */
  readonly stored: StoredRows
  readonly pending: PendingItems<AcceptedItem>
  /** Bytes of items accepted since the start, at least: those of a transaction that had to run twice count twice. */
  enteredBytes = 0
  readonly #items: Table
  readonly #waiting: WaitingLines
  readonly #values: Table
  /** The last item of an owner with some content. */
  readonly #contents: Table
  /** Items that are bundles, and were not looked into yet. */
  readonly opening: OpeningLines
  readonly #inner: Table
  /** What lies in uploaded bundles, whether these were looked into or not. */
  readonly scanned: ScannedIds
  readonly unlisted: UnlistedItems
  /** Found while they were to be packed. */
  readonly unreadable = new UnreadableItems()
  /** Keys alone: an uploaded bundle, and an item in it. */
  readonly #within: Table
  /** Names under which prices are reserved, where these are not the ids of the items (`heldAs`): the items. */
  readonly #holds: Table

  /** `marks`: other threads read the tables, too. */
  constructor(environment: Environment, marks?: PendingMarks) {
    this.pending = new PendingItems(marks)
    this.environment = this.pending.writtenFirst(environment)
    this.#items = environment.table('items')
    this.stored = new StoredRows(environment)
    this.#waiting = new WaitingLines(environment)
    this.#values = environment.table('words')
    this.#contents = environment.table('contents')
    this.opening = new OpeningLines(environment)
    this.#inner = environment.table('inner')
    this.scanned = new ScannedIds(environment)
    this.unlisted = new UnlistedItems(environment)
    this.#within = environment.table('within')
    this.#holds = environment.table('holds')
  }

  find(id: Id): AcceptedItem | undefined {
    return this.pending.find(id) ?? acceptedItem(this.#items, id)
  }

  /** The item by which an owner has uploaded this content (SHA-256, 32 bytes); undefined where there is none that is kept. */
  ofContent(owner: string, digest: Uint8Array): Id | undefined {
    const id = this.pending.ofContent(owner, digest) ?? this.#idOfContent(owner, digest)
    if (id === undefined) return undefined
    const item = this.find(id) ?? this.around(id)
    return item === undefined || item.reason !== undefined ? undefined : id
  }

  #idOfContent(owner: string, digest: Uint8Array): Id | undefined {
    const found = this.#contents.get(contentKey(owner, digest))
    return found === undefined ? undefined : idOfBytes(found)
  }

  /**
   * The item that was accepted for what is reserved under this name; undefined where there is none. It is written together with
   * the item: whoever is about to give the money back has to ask here.
   */
  ofReservation(name: string): AcceptedItem | undefined {
    const id = this.pending.ofReservation(name) ?? this.#idOfHold(name)
    return id === undefined ? undefined : this.find(id)
  }

  #idOfHold(name: string): Id | undefined {
    const found = this.#holds.get(Buffer.from(name))
    return found === undefined ? undefined : idOfBytes(found)
  }

  /** The uploaded item that this one lies in, and that was read with it: its signature was valid. */
  around(id: Id): AcceptedItem | undefined {
    const inner = innerItem(this.#inner, id)
    return inner === undefined ? undefined : this.find(inner.parent)
  }

  /** The uploaded bundle that this item lies in, at any depth, as the bundle says; undefined: none that is kept is known. */
  scannedBundleOf(id: Id): AcceptedItem | undefined {
    const bundle = this.scanned.bundleOf(id)
    const item = bundle === undefined ? undefined : this.find(bundle)
    return item === undefined || isGone(item) ? undefined : item
  }

  /** Bundles whose bytes are kept, among so many items behind this one; and the last of these, where there may be more. */
  keptBundles(after: Id | undefined, limit: number): { readonly bundles: readonly Id[]; readonly last?: Id } {
    const start = after && Buffer.concat([idBytes(after), Uint8Array.of(0)])
    const items = this.#items
      .from(start, limit)
      .map(({ value }) => readJsonRow(value, acceptedRow) as AcceptedItem)
    const last = items.length < limit ? undefined : items.at(-1)?.id
    const bundles = items.filter(({ isBundle, released }) => isBundle === true && released !== true)
    return { bundles: bundles.map(({ id }) => id), ...(last === undefined ? {} : { last }) }
  }

  /** Ids of items on disk behind this one, in their order. */
  idsBehind(after: Id | undefined, limit: number): Id[] {
    const start = after && Buffer.concat([idBytes(after), Uint8Array.of(0)])
    return [...this.#items.keys({ limit, ...(start === undefined ? {} : { start }) })].map((key) =>
      idOfBytes(key),
    )
  }

  /** Whether an accepted bundle was not looked into yet. */
  isUnopened(id: Id): boolean {
    return this.opening.has(id)
  }

  /** Ids of items in an uploaded bundle that were written down with `isMortal`. */
  *within(bundle: Id): Generator<Id> {
    const start = Buffer.concat([idBytes(bundle), Buffer.alloc(32)])
    const end = Buffer.concat([idBytes(bundle), Buffer.alloc(33, 0xff)])
    for (const key of this.#within.keys({ start, end })) yield idOfBytes(key.subarray(32))
  }

  /** Whether this bundle alone brought the item: it was not uploaded by itself, and lies in no later one. */
  isOnlyWithin(bundle: Id, id: Id): boolean {
    const item = this.find(id)
    return (item === undefined || isGone(item)) && innerItem(this.#inner, id)?.parent === bundle
  }

  /** Items that wait for a bundle. */
  get waiting(): number {
    return this.#waiting.count + this.pending.count
  }

  get count(): number {
    return this.#items.count() + this.pending.count
  }

  /** Ids of those that wait, the first come first. */
  oldest(limit: number): readonly Id[] {
    return this.#waiting.oldest(limit)
  }

  /** The same without free items. */
  oldestPaid(limit: number): Generator<Id> {
    return this.#waiting.first(limit)
  }

  /** Ids of free items that wait, by turns of who sent them. Nothing may be written meanwhile. */
  freeByTurns(limit: number): Generator<Id> {
    return this.#waiting.byTurns(limit)
  }

  /** Writes the rows of pending items, in a transaction of their own. */
  writePending(): void {
    this.environment.write(() => undefined)
  }

  /** `more` is written in the same transaction. */
  accept(items: readonly AcceptedItem[], more: () => void): void {
    this.environment.write(() => {
      more()
      for (const item of items) this.enter(item)
    })
  }

  /** Only inside a `write` of the environment, as all below. One that was accepted, with all that follows from it. */
  enter(item: AcceptedItem): void {
    const { digest, owner, id, isBundle, place, heldAs, stored } = item
    this.enteredBytes += place.sizeBytes
    this.put(item)
    if (stored !== undefined) this.stored.put(stored, id)
    this.#waiting.put(item)
    if (digest !== undefined) this.putContent(owner, Buffer.from(digest, 'base64url'), id)
    if (isBundle === true) this.opening.put(item)
    if (heldAs !== undefined) this.#holds.put(Buffer.from(heldAs), idBytes(id))
  }

  put(item: AcceptedItem): void {
    this.#items.put(idBytes(item.id), Buffer.from(JSON.stringify(item)))
  }

  /** Its bytes are not needed here any more, nor in the object store. */
  release(item: AcceptedItem): void {
    const { stored, ...released } = item
    this.put({ ...released, released: true })
    if (stored !== undefined) this.stored.remove(stored, item.id)
  }

  /** Nothing of it is here any more, nor in a block of this service: it may be uploaded anew (`isGone`). */
  letGo({ stored: _, isTakenOver: __, ...item }: AcceptedItem, reason: string): void {
    this.unqueue(item)
    this.put({ ...item, released: true, reason })
  }

  /** To the machine that has taken it over. */
  leave(item: AcceptedItem): void {
    this.letGo(item, leftReason)
    if (item.stored !== undefined) this.stored.remove(item.stored, item.id)
  }

  /** The object store has it, too. */
  putStored(item: AcceptedItem, group: string): void {
    this.put({ ...item, stored: group })
    this.stored.put(group, item.id)
  }

  putContent(owner: string, digest: Uint8Array, id: Id): void {
    this.#contents.put(contentKey(owner, digest), idBytes(id))
  }

  /**
   * An item in an uploaded bundle. The first bundle with it counts: anybody may upload another one with the same items, which
   * must not lift a block of the first. `isMortal`: its bundle is kept for some time only, and `within` finds the item
   * afterwards; the last bundle counts, so that the item lasts as long. Others are never looked up in this way, so they take no
   * room in that table.
   */
  putInner(id: Id, inner: InnerItem, isMortal: boolean): void {
    const first = isMortal ? undefined : this.around(id)
    if (first !== undefined && first.id !== inner.parent && !isGone(first) && !isGivenUp(first)) return
    this.#inner.put(idBytes(id), Buffer.from(JSON.stringify(inner)))
    if (isMortal) this.#within.put(Buffer.concat([idBytes(inner.parent), idBytes(id)]), none)
  }

  /** Forgets an item in an uploaded bundle; a later bundle with it keeps it. */
  removeInner(bundle: Id, id: Id): void {
    this.#within.remove(Buffer.concat([idBytes(bundle), idBytes(id)]))
    if (innerItem(this.#inner, id)?.parent === bundle) this.#inner.remove(idBytes(id))
  }

  /** A bundle was looked into. */
  opened(id: Id): void {
    this.opening.remove(id)
  }

  /** It is in a bundle now, or given up. */
  unqueue(item: AcceptedItem): void {
    this.#waiting.remove(item)
  }

  /** What was given up gets as many tries as a new item. */
  retry({ reason: _, failures: __, ...item }: AcceptedItem): void {
    this.put(item)
    this.requeue(item)
  }

  /** It needs a bundle. */
  requeue(item: AcceptedItem): void {
    this.#waiting.put(item)
  }

  value(name: string): string | undefined {
    const found = this.#values.get(Buffer.from(name))
    return found === undefined ? undefined : Buffer.from(found).toString()
  }

  putValue(name: string, text: string): void {
    this.#values.put(Buffer.from(name), Buffer.from(text))
  }
}
