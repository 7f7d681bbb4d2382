import { type Clock, pause, withinTime } from '../../actor/clock.js'
import { FairSlots } from '../../actor/fair-slots.js'
import type { Log } from '../../actor/log.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { ObjectStore } from '../../source/objects/object-store.js'
import { keysOf, wholeObject } from '../../source/objects/small-objects.js'
import { tryWrite } from '../../store/disk-error.js'
import { decodeDirectory } from './group-format.js'
import { isEarlierName, machineOf } from './machine-names.js'
import type { NeighbourEntry, NeighbourRecords } from './neighbour-records.js'
import type { RecentObjects } from './recent-objects.js'
import { decodeGroupName, type StoredKeys } from './stored-keys.js'

export interface NeighbourFollowerParts {
  readonly store: ObjectStore
  readonly recent: RecentObjects
  readonly keys: StoredKeys
  /** The name of this machine, whose uploads are on its disk. */
  readonly node: string
  readonly records: NeighbourRecords
  /** No other machine is known by the settings: there are others only where one was seen in the store. */
  readonly isAlone: boolean
  readonly clock: Clock
  readonly log: Pick<Log, 'warn'>
}

export interface FollowerOptions {
  /** Between two looks while others upload, and while they do not. */
  readonly busyMs: number
  readonly idleMs: number
  /** Between two looks at all that is there, which find what is gone, and what appeared late. */
  readonly allMs: number
  /** What readers wait for one look, and for the first look at all from its beginning on. */
  readonly lookWaitMs: number
  readonly firstWaitMs: number
}

export const followerDefaults: FollowerOptions = {
  busyMs: 1000,
  idleMs: 5000,
  allMs: 600_000,
  lookWaitMs: 5000,
  firstWaitMs: 1000,
}

/**
 * A group appears at most so long after the time in its name: PUTs are given up earlier, and the store's clock is known to a
 * second. One that comes later has no receipts, or few, and is found by the next look at all.
 */
const lateMs = 30_000
/** After the start groups of so long before are looked at first: readers want the youngest uploads most. */
const youngMs = 60_000
/** Smaller groups are read as a whole: the item that somebody waits for is in them. */
const wholeMaxBytes = 1280 * 1024
/** Directories that are read at once, and that are written down together. */
const [readsMax, batchMax] = [8, 256] as const
/** The two kinds of looks, which share the reads of directories evenly. */
type Look = 'young' | 'all'
const notYet = refuse('late', 'self', 'what other machines keep in the object store is not known yet')

/** A group whose directory cannot be read has nothing. */
const nothing: readonly NeighbourEntry[] = []

/**
 * Knows what other machines keep in the store. A list of the youngest names costs one request, whoever wrote them; each directory
 * is read once.
 */
export class NeighbourFollower {
  #running: Promise<Refusal | undefined> | undefined
  #next: Promise<Refusal | undefined> | undefined
  /** Undefined: the store was not looked at yet. */
  #hasNeighbours: boolean | undefined
  /** The last name of this machine. */
  #own: string
  #isBusy = false
  #allAtMs = Number.NEGATIVE_INFINITY
  /** All that was there at the start is known. */
  #isWhole = false
  /** The first look at all while it runs, and when it began. */
  #first: { readonly look: Promise<Refusal | undefined>; readonly beganMs: number } | undefined
  /** When the last whole look began, by the store's clock; undefined: none was carried out since the start. */
  #lookedMs: number | undefined
  readonly #slots = FairSlots.unbounded(readsMax)
  readonly #abort = new AbortController()
  #following: Promise<void> | undefined

  constructor(
    private readonly parts: NeighbourFollowerParts,
    private readonly options: FollowerOptions = followerDefaults,
  ) {
    this.#own = parts.node
  }

  start(): void {
    this.#following = this.#follow()
  }

  async stop(): Promise<void> {
    this.#abort.abort()
    await Promise.all([this.#following, this.#running, this.#first?.look])
  }

  async #follow(): Promise<void> {
    const { busyMs, idleMs, allMs } = this.options
    const { signal } = this.#abort
    while (!signal.aborted) {
      const isAllDue = this.parts.clock.monotonic() - this.#allAtMs >= allMs
      if (isAllDue && this.#isWhole) await this.#lookAtAll()
      else await this.#young()
      await pause(this.#isBusy ? busyMs : idleMs, signal)
    }
  }

  /** Resolves when all is known that was in the store at the time of the call. A refusal: the store could not be reached. */
  async fresh(): Promise<Refusal | undefined> {
    return (await this.#young()) ?? (await this.#firstLook()?.look)
  }

  /**
   * The same for a reader, who waits a short time only. A refusal (`late`): not all is known yet, so an upload that is not found
   * may be there. What came just now is known mostly.
   */
  async freshSoon(): Promise<Refusal | undefined> {
    const { clock } = this.parts
    const { lookWaitMs, firstWaitMs } = this.options
    const refusal = await withinTime(clock, lookWaitMs, this.#young(), notYet)
    const first = this.#firstLook()
    if (refusal !== undefined || first === undefined) return refusal
    const leftMs = first.beganMs + firstWaitMs - clock.monotonic()
    return leftMs <= 0 ? notYet : withinTime(clock, leftMs, first.look, notYet)
  }

  /** A look at what is young. Calls share requests. */
  #young(): Promise<Refusal | undefined> {
    // One that runs may have sent its request before the upload that somebody wants was there.
    if (this.#running === undefined) {
      this.#running = this.#look().finally(() => {
        this.#running = undefined
      })
      return this.#running
    }
    this.#next ??= this.#running.then(() => {
      this.#next = undefined
      return this.#young()
    })
    return this.#next
  }

  /** Begins the first look at all, or the next try of it, where none runs; undefined: it was carried out. */
  #firstLook(): { readonly look: Promise<Refusal | undefined>; readonly beganMs: number } | undefined {
    if (this.#isWhole) return undefined
    this.#first ??= {
      beganMs: this.parts.clock.monotonic(),
      look: this.#lookAtAll().finally(() => {
        this.#first = undefined
      }),
    }
    return this.#first
  }

  /** Others may have put something there since the last look. */
  get mayHaveNeighbours(): boolean {
    return !this.parts.isAlone || (this.#hasNeighbours ?? true)
  }

  /**
   * Looks at what came since the last look: this machine may have stood still, or the store may have been away from it. The clock
   * of the store is known by its answers.
   */
  async #look(): Promise<Refusal | undefined> {
    const { clock, store, keys } = this.parts
    const beganMs = clock.monotonic()
    const since = (this.#lookedMs ?? clock.now() + store.aheadMs - youngMs) - lateMs
    const refusal = await this.#taken('young', keys.since(since))
    if (refusal !== undefined) return refusal
    this.#lookedMs = clock.now() + store.aheadMs - (clock.monotonic() - beganMs)
    // One that failed is tried again after each look.
    void this.#firstLook()
    return undefined
  }

  async #lookAtAll(): Promise<Refusal | undefined> {
    const { records, clock } = this.parts
    const before = new Set(records.groups())
    const seen = new Set<string>()
    const own = this.#own
    const refusal = await this.#taken('all', undefined, (name) => seen.add(name))
    if (refusal !== undefined) return refusal
    this.#isWhole = true
    if (own === this.#own) this.#allAtMs = clock.monotonic()
    const gone = [...before].filter((name) => !seen.has(name))
    for (let at = 0; at < gone.length; at += batchMax)
      if (tryWrite(() => records.drop(gone.slice(at, at + batchMax))) !== undefined) return undefined
    return undefined
  }

  /** Lists from `since` on, and takes in what is new. */
  async #taken(
    look: Look,
    since: string | undefined,
    onName: (name: string) => void = () => undefined,
  ): Promise<Refusal | undefined> {
    const { store, keys, records } = this.parts
    const { signal } = this.#abort
    let count = 0
    for await (const page of keysOf(store, keys.all, since, signal)) {
      if (isRefusal(page)) return page
      const names: string[] = []
      for (const key of page) {
        const other = keys.nodeOf(key)
        if (other !== undefined) this.#note(other)
        const name = keys.nameOf(key)
        if (name === undefined || this.#isOwn(decodeGroupName(name)?.node)) continue
        this.#hasNeighbours = true
        onName(name)
        if (!records.has(name)) names.push(name)
      }
      count += names.length
      for (let at = 0; at < names.length; at += batchMax) {
        if (signal.aborted) return notYet
        const refusal = await this.#read(look, names.slice(at, at + batchMax))
        if (refusal !== undefined) return refusal
      }
    }
    if (look === 'all') this.#hasNeighbours ??= false
    this.#isBusy = count > 0
    return undefined
  }

  #note(name: string): void {
    if (machineOf(name) !== this.parts.node) this.#hasNeighbours = true
    else if (isEarlierName(this.#own, name)) {
      // What is under the earlier name belongs to another machine now: all names are looked at once more.
      this.#own = name
      this.#allAtMs = Number.NEGATIVE_INFINITY
    }
  }

  #isOwn(name: string | undefined): boolean {
    return name !== undefined && machineOf(name) === this.parts.node && !isEarlierName(name, this.#own)
  }

  async #read(look: Look, names: readonly string[]): Promise<Refusal | undefined> {
    const read = await Promise.all(names.map((name) => this.#slots.run(() => this.#directory(name), look)))
    const found = read.flatMap((entries, at) => {
      const name = names[at]
      return name === undefined || entries === 'gone' || isRefusal(entries) ? [] : [{ name, entries }]
    })
    const unwritten = tryWrite(() => this.parts.records.add(found))
    return unwritten ?? read.find(isRefusal)
  }

  async #directory(group: string): Promise<readonly NeighbourEntry[] | 'gone' | Refusal> {
    const { store, recent, keys, log } = this.parts
    const name = decodeGroupName(group)
    if (name === undefined) return nothing
    const { directoryBytes, headBytes, totalBytes, only } = name
    if (only !== undefined)
      return [{ ...only, offset: headBytes, sizeBytes: totalBytes - headBytes, contentType: '' }]
    const isWhole = totalBytes <= wholeMaxBytes
    const window = { start: 0, end: (isWhole ? totalBytes : directoryBytes) - 1 }
    const key = keys.group(group)
    const found = await store.get(key, window, { signal: this.#abort.signal })
    if (isRefusal(found)) return found.refused === 'unknown' ? 'gone' : found
    const { part } = found
    const length = part === undefined ? 0 : part.end - part.start + 1
    const bytes = await wholeObject({ ...found, sizeBytes: length }, window.end + 1)
    if (isRefusal(bytes)) return bytes
    const entries = found.sizeBytes === totalBytes ? decodeDirectory(bytes, totalBytes) : undefined
    if (entries === undefined) log.warn({ group }, 'a group of uploads is malformed: left out')
    else if (isWhole) recent.hold(key, bytes)
    return entries ?? nothing
  }
}
