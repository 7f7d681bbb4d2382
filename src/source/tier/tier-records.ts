import { type Id, idBytes, idOfBytes } from '../../format/id.js'
import { readJsonRow } from '../../store/json-row.js'
import { type Environment, isDamage, present, type Table } from '../../store/lmdb.js'
import { decodePackPlace, encodePackPlace, type PackListing, type PackPlace } from './pack-format.js'
import type { PutCount } from './put-budget.js'

/** Where a small object lies in the store. */
export interface StoredPlace extends PackPlace {
  readonly pack: string
}

/** Which store the records are about, and how far they go. */
interface TierProgress {
  /** Random id in the store's own record; a bucket that was replaced has another one. */
  readonly store?: string
  /** Number of the last directory that was read. */
  readonly last: number
  /** How far a push over all content on disk came: the digest behind which it goes on, in hex. */
  readonly pushed?: string
  /** A push over all content has yet to come to its end. */
  readonly isPushing?: boolean
  /** An operator ordered that push. */
  readonly isOrdered?: boolean
  readonly count?: PutCount
}

/** A bundle whose items are to be listed. */
export interface BundleDue {
  readonly dueMs: number
  /** Attempts so far. */
  readonly tries: number
}

function dueOf(row: Uint8Array): BundleDue {
  const bytes = Buffer.from(row.buffer, row.byteOffset, row.length)
  return { dueMs: bytes.readDoubleBE(0), tries: bytes.readUInt8(8) }
}

const stateKey = Buffer.from('state')

function numberKey(number: number): Buffer {
  const key = Buffer.alloc(4)
  key.writeUInt32BE(number)
  return key
}

/**
 * What this machine knows of the store: what lies in its packs, which objects it has, and which contents have yet to be put
 * there. Everything but the last can be read anew from the store.
 */
export class TierRecords {
  readonly #state: Table
  /** id -> number of the directory u32 big-endian, place. */
  readonly #packed: Table
  /** Number of the directory -> name of the pack. */
  readonly #packs: Table
  /** id -> nothing: objects of their own that are known to be in the store. */
  readonly #stored: Table
  /** id -> when its items are listed (ms since 1970) f64 big-endian, attempts u8. */
  readonly #bundles: Table
  /** id -> nothing: to be put. */
  readonly #waiting: Table
  #known: TierProgress

  constructor(private readonly environment: Environment) {
    this.#state = environment.table('state')
    this.#packed = environment.table('packed')
    this.#packs = environment.table('packs')
    this.#stored = environment.table('stored')
    this.#waiting = environment.table('waiting')
    this.#bundles = environment.table('bundles')
    const row = this.#state.get(stateKey)
    this.#known = row === undefined ? { last: 0 } : (readJsonRow(row, 'tier: state') as TierProgress)
  }

  get store(): string | undefined {
    return this.#known.store
  }

  /** Number of the last directory that was read; 0 before the first. */
  get last(): number {
    return this.#known.last
  }

  get isPushing(): boolean {
    return this.#known.isPushing === true
  }

  /** An operator ordered the push that has yet to come to its end. */
  get isOrdered(): boolean {
    return this.#known.isOrdered === true
  }

  /** What was put so far. */
  get count(): PutCount | undefined {
    return this.#known.count
  }

  /** Digest behind which a push over all content goes on. */
  get pushed(): Buffer | undefined {
    const { pushed } = this.#known
    return pushed === undefined ? undefined : Buffer.from(pushed, 'hex')
  }

  get waitingCount(): number {
    return this.#waiting.count()
  }

  get packedCount(): number {
    return this.#packed.count()
  }

  get storedCount(): number {
    return this.#stored.count()
  }

  /** Where a small object lies; undefined where no directory that was read names it. */
  place(id: Id): StoredPlace | undefined {
    return this.#orElse(undefined, () => this.#place(id))
  }

  #place(id: Id): StoredPlace | undefined {
    const row = this.#packed.get(idBytes(id))
    if (row === undefined) return undefined
    const bytes = Buffer.from(row.buffer, row.byteOffset, row.length)
    const pack = this.#packs.get(bytes.subarray(0, 4))
    const place = decodePackPlace(bytes, 4)
    if (pack === undefined || place === undefined) return undefined
    return { ...place, pack: Buffer.from(pack).toString('latin1') }
  }

  /** Whether an object is known to be in the store, in a pack or of its own. */
  has(id: Id): boolean {
    const key = idBytes(id)
    return this.#orElse(
      false,
      () => this.#packed.view(key) !== undefined || this.#stored.view(key) !== undefined,
    )
  }

  /** Ids in packs from behind `after` on. */
  packedIds(after: Id | undefined, limit: number): Id[] {
    const start = after === undefined ? {} : { start: idBytes(after) }
    const ids = [...this.#packed.keys({ ...start, limit: limit + 1 })].map((key) => idOfBytes(key))
    return ids.filter((id) => id !== after).slice(0, limit)
  }

  /** Takes in the directory with the number behind the last one. Throws where the disk refuses. */
  add(number: number, { pack, entries }: PackListing): void {
    this.environment.write(() => {
      this.#packs.put(numberKey(number), Buffer.from(pack, 'latin1'))
      for (const entry of entries) {
        const key = idBytes(entry.id)
        this.#packed.put(key, Buffer.concat([numberKey(number), encodePackPlace(entry)]))
        this.#waiting.remove(key)
      }
      this.#put({ ...this.#known, last: number })
    })
  }

  /** A packed object is not what its directory says. */
  forget(id: Id): void {
    this.environment.write(() => this.#packed.remove(idBytes(id)))
  }

  /** So much was put now. */
  counted(count: PutCount): void {
    this.environment.write(() => this.#put({ ...this.#known, count }))
  }

  stored(ids: readonly Id[]): void {
    this.environment.write(() => {
      for (const id of ids) {
        this.#stored.put(idBytes(id), present)
        this.#waiting.remove(idBytes(id))
      }
    })
  }

  wait(ids: readonly Id[]): void {
    this.environment.write(() => {
      for (const id of ids) this.#waiting.put(idBytes(id), present)
    })
  }

  /** When the items of a bundle are listed; undefined: they are not to be. */
  bundle(id: Id): BundleDue | undefined {
    const row = this.#bundles.get(idBytes(id))
    return row === undefined ? undefined : dueOf(row)
  }

  /** Undefined: it is listed no more. */
  setBundle(id: Id, due: BundleDue | undefined): void {
    const key = idBytes(id)
    const row = Buffer.alloc(9)
    row.writeDoubleBE(due?.dueMs ?? 0)
    row.writeUInt8(due?.tries ?? 0, 8)
    this.environment.write(() =>
      due === undefined ? this.#bundles.remove(key) : this.#bundles.put(key, row),
    )
  }

  /** Bundles whose items are to be listed now. There are few: those of the last half hour. */
  dueBundles(nowMs: number, limit: number): (BundleDue & { readonly id: Id })[] {
    const due: (BundleDue & { readonly id: Id })[] = []
    for (const { key, value } of this.#bundles.span({})) {
      const one = dueOf(value)
      if (one.dueMs <= nowMs) due.push({ id: idOfBytes(key), ...one })
      if (due.length >= limit) break
    }
    return due
  }

  /** These need not be put: they are no longer on disk, or must not be. */
  drop(ids: readonly Id[]): void {
    this.environment.write(() => {
      for (const id of ids) this.#waiting.remove(idBytes(id))
    })
  }

  /** What waits, in the order of ids from behind `after` on. */
  waiting(after: Id | undefined, limit: number): Id[] {
    const start = after === undefined ? undefined : idBytes(after)
    const ids = this.#waiting.from(start, limit + 1).map(({ key }) => idOfBytes(key))
    return ids.filter((id) => id !== after).slice(0, limit)
  }

  /** A push over all content on disk begins, is ordered by an operator, goes on behind a digest, or is over. */
  push(step: 'begun' | 'ordered' | 'over' | Uint8Array): void {
    if (step === 'ordered') {
      this.environment.write(() => this.#put({ ...this.#known, isOrdered: true }))
      return
    }
    const { pushed: _pushed, isPushing: _isPushing, isOrdered, ...rest } = this.#known
    const next: TierProgress =
      step === 'over'
        ? rest
        : {
            ...rest,
            isPushing: true,
            ...(isOrdered === true ? { isOrdered } : {}),
            ...(step === 'begun' ? {} : { pushed: Buffer.from(step).toString('hex') }),
          }
    this.environment.write(() => this.#put(next))
  }

  /** Nothing is known of what the store has: it is another one, or went back to an older state. What waits, waits on. */
  reset(store: string | undefined): void {
    this.environment.write(() => {
      for (const table of [this.#packed, this.#packs, this.#stored])
        for (const key of [...table.keys({})]) table.remove(key)
      const { count } = this.#known
      this.#put({
        last: 0,
        ...(store === undefined ? {} : { store }),
        ...(count === undefined ? {} : { count }),
      })
    })
  }

  close(): Promise<void> {
    return this.environment.close()
  }

  /** What `read` finds; `otherwise` where a page that it needs is damaged. */
  #orElse<Found>(otherwise: Found, read: () => Found): Found {
    try {
      return read()
    } catch (error) {
      if (!isDamage(error)) throw error
      this.environment.refresh()
      return otherwise
    }
  }

  #put(state: TierProgress): void {
    this.#known = state
    this.#state.put(stateKey, Buffer.from(JSON.stringify(state)))
  }
}
