import { type Clock, type Timer, withinTime } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import type { LmdbCatalog } from '../../catalog/reader.js'
import type { Id } from '../../format/id.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { BlobStore } from '../../store/blobs.js'
import type { Environment } from '../../store/lmdb.js'
import type { GuardedObjects } from '../objects/guarded-objects.js'
import type { Source } from '../source.js'
import { BundleLister } from './bundle-lister.js'
import { ListingPublisher } from './listing-publisher.js'
import { PackFollower } from './pack-follower.js'
import { PutBudget, type PutBudgetOptions } from './put-budget.js'
import { TierKeys } from './tier-keys.js'
import { readMarker } from './tier-marker.js'
import type { TierMeters } from './tier-meters.js'
import { TierRecords } from './tier-records.js'
import { TierSource } from './tier-source.js'
import type { TierMismatch, TierState, TierWalk } from './tier-state.js'
import { TierWalks } from './tier-walks.js'
import { TierWriter, tierWriterDefaults } from './tier-writer.js'

export interface ContentTierParts {
  readonly store: GuardedObjects
  readonly environment: Environment
  readonly catalog: LmdbCatalog
  readonly blobs: BlobStore
  readonly isForbidden: (id: Id, digest: Uint8Array) => boolean
  readonly hasRoom: () => boolean
  readonly meters: TierMeters
  readonly clock: Clock
  readonly log: Log
}

export interface ContentTierOptions {
  readonly prefix: string
  readonly network: string
  readonly keepMinBytes: number
  /** What may be put, at most. */
  readonly budget: PutBudgetOptions
  /** A pack that is not full is put after so long. */
  readonly gatherMs?: number
  /** Between two looks for packs of others, and until a store that could not be opened is tried again. */
  readonly followMs?: number
  readonly openAgainMs?: number
  /** Between two looks at what waits. */
  readonly roundMs?: number
  /** When the items of a bundle are looked for after it was put. */
  readonly listAfterMs?: readonly number[]
}

const usualFollowMs = 10_000
const usualOpenAgainMs = 5000
/** A store that went back is read anew at most this often. */
const resetMs = 600_000
const closeMs = 5000

/**
 * Verified content in an object store, as a second tier below the disk: read where the disk has none, written in the background.
 * It is opened beside everything else: a store that cannot be reached stops nothing.
 */
export class ContentTier {
  /** Comes after the disk, before the network. */
  readonly source: Source
  readonly #keys: TierKeys
  readonly #records: TierRecords
  readonly #follower: PackFollower
  readonly #bundles: BundleLister
  readonly #writer: TierWriter
  #walks: TierWalks | undefined
  #timers: Timer[] = []
  #mismatch: TierMismatch | 'opening' | undefined = 'opening'
  #isReadOnly = false
  #isOpening = false
  #following = false
  #resetAtMs = Number.NEGATIVE_INFINITY
  readonly #underway = new Set<Promise<void>>()
  readonly #abort = new AbortController()

  constructor(
    private readonly parts: ContentTierParts,
    private readonly options: ContentTierOptions,
  ) {
    const { store, environment, catalog, blobs, isForbidden, meters, clock, log } = parts
    this.#keys = new TierKeys(options.prefix)
    this.#records = new TierRecords(environment)
    this.#follower = new PackFollower(store, this.#keys, this.#records, log)
    const publisher = new ListingPublisher(store, this.#keys, this.#records, this.#follower)
    const ofBundles = { records: this.#records, publisher, catalog, isForbidden, clock }
    this.#bundles = new BundleLister(ofBundles, options.listAfterMs)
    const { keepMinBytes, gatherMs, roundMs } = { ...tierWriterDefaults, ...options }
    this.#writer = new TierWriter(
      {
        store,
        keys: this.#keys,
        records: this.#records,
        budget: new PutBudget(options.budget, clock, this.#records.count),
        follower: this.#follower,
        publisher,
        bundles: this.#bundles,
        catalog,
        blobs,
        isForbidden,
        onOlder: () => this.#older(),
        put: (outcome, count) => meters.put(outcome, count),
        clock,
        log,
      },
      { ...tierWriterDefaults, keepMinBytes, gatherMs, roundMs },
    )
    const inner = new TierSource({
      store,
      keys: this.#keys,
      packed: (id) => this.#records.place(id),
      wrong: (id, _, isPackGone) => this.#wrong(id, isPackGone),
      read: (outcome) => meters.read(outcome),
    })
    this.source = {
      name: inner.name,
      open: async (wanted, ending) => {
        const isUsable = this.#mismatch === undefined
        return isUsable ? inner.open(wanted, ending) : this.#closed()
      },
    }
  }

  /** Begins to open the store. `bring`: how a content comes from it onto this disk. */
  start(bring: (id: Id) => Promise<boolean>): void {
    const { store, catalog, hasRoom, clock, log } = this.parts
    this.#walks = new TierWalks({
      store,
      keys: this.#keys,
      records: this.#records,
      writer: this.#writer,
      catalog,
      bring,
      hasRoom,
      log,
    })
    this.#do(this.#open())
    this.#timers = [
      clock.every(this.options.openAgainMs ?? usualOpenAgainMs, () => this.#do(this.#open())),
      clock.every(this.options.followMs ?? usualFollowMs, () => this.#do(this.#follow())),
      clock.every(1000, () => this.#measure()),
    ]
  }

  /** These contents were verified, and are on disk. */
  verified(ids: readonly Id[]): void {
    for (const id of ids) this.#writer.add(id)
  }

  get state(): TierState {
    const walk = this.#walks?.current
    return {
      state: this.#state(),
      waiting: this.#writer.waiting,
      packed: this.#records.packedCount,
      objects: this.#records.storedCount,
      ...(walk === undefined ? {} : { walk }),
    }
  }

  /** Whether the store is known to have this content. */
  knows(id: Id): boolean {
    return this.#records.has(id)
  }

  /** Begins a walk; a refusal where the store cannot be used, or the other one is under way. */
  walk(kind: TierWalk['kind']): TierState | Refusal {
    if (this.#mismatch !== undefined) return this.#closed()
    if (kind === 'push' && this.#isReadOnly)
      return refuse('busy', 'self', 'the object store may not be written')
    if (this.#walks?.order(kind) !== true) return refuse('busy', 'self', 'the other way is under way')
    return this.state
  }

  async stopWalk(): Promise<TierState> {
    await this.#walks?.stop()
    return this.state
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) timer.cancel()
    this.#abort.abort()
    const ended = Promise.all([this.#walks?.pause(), this.#writer.stop(), ...this.#underway])
    await withinTime(this.parts.clock, closeMs, ended, undefined)
    await this.parts.store.close()
    await this.#records.close()
  }

  /** What is under way is waited for at the end. It never rejects. */
  #do(work: Promise<void>): void {
    this.#underway.add(work)
    void work.finally(() => this.#underway.delete(work))
  }

  #state(): TierState['state'] {
    const { store } = this.parts
    const fault = store.fault('read') ?? store.fault('write')
    if (this.#mismatch !== undefined)
      return this.#mismatch === 'opening' ? (fault ?? 'opening') : this.#mismatch
    if (store.fault('read') !== undefined) return store.fault('read') ?? 'away'
    if (this.#isReadOnly || store.fault('write') === 'denied') return 'read only'
    return fault ?? this.#writer.limit ?? 'well'
  }

  #closed(): Refusal {
    // It may have the content: that nobody knows it is not to be concluded.
    if (this.#mismatch === 'opening')
      return refuse('busy', 'upstream', 'the object store was not reached yet')
    return refuse('unknown', 'client', 'the object store is not for this gateway')
  }

  async #open(): Promise<void> {
    if (this.#mismatch !== 'opening' || this.#isOpening || this.#abort.signal.aborted) return
    this.#isOpening = true
    try {
      const { store, log } = this.parts
      const read = await readMarker(store, this.#keys, this.options.network, this.#abort.signal)
      if (isRefusal(read)) return
      if (typeof read === 'string') {
        log.error({ why: read }, 'the object store is not used')
        this.#mismatch = read
        return
      }
      const known = this.#records.store
      if (known !== read.marker.store) {
        if (known !== undefined) log.warn('the object store is another one than before: it is read anew')
        this.#records.reset(read.marker.store)
      }
      this.#isReadOnly = read.isReadOnly
      this.#mismatch = undefined
      if (!read.isReadOnly) {
        this.#writer.start()
        this.#walks?.resume()
      } else log.warn('the object store may not be written: it is only read')
      this.#do(this.#follow())
    } catch (error) {
      this.parts.log.error({ err: error }, 'the object store could not be opened: tried again')
    } finally {
      this.#isOpening = false
    }
  }

  async #follow(): Promise<void> {
    if (this.#mismatch !== undefined || this.#following || this.#abort.signal.aborted) return
    this.#following = true
    try {
      await this.#follower.follow(this.#abort.signal)
      if (!this.#isReadOnly) await this.#bundles.run(this.#abort.signal)
      const mayPush = !this.#isReadOnly && this.#walks?.current?.state !== 'running'
      if (mayPush && this.#writer.takeMissed()) this.#walks?.start('push')
    } catch (error) {
      this.parts.log.error({ err: error }, 'directories of the object store could not be kept: tried again')
    } finally {
      this.#following = false
    }
  }

  #wrong(id: Id, isPackGone: boolean): void {
    this.parts.log.warn({ id, isPackGone }, 'the object store has not what its directory says')
    try {
      this.#records.forget(id)
    } catch (error) {
      this.parts.log.error({ err: error }, 'a record of the object store could not be removed')
    }
    if (isPackGone) this.#do(this.#compare())
  }

  /** Whether the store went back to an older state; it is read anew then. */
  async #compare(): Promise<void> {
    const isCurrent = await this.#follower.isCurrent(this.#abort.signal)
    if (isCurrent === false) this.#older()
  }

  #older(): void {
    const { clock, log } = this.parts
    if (clock.monotonic() - this.#resetAtMs < resetMs) return
    this.#resetAtMs = clock.monotonic()
    log.warn('the object store went back to an older state: it is read anew, and what it lost is put again')
    try {
      this.#records.reset(this.#records.store)
      // A push that is under way has passed by some of it: one begins when it is over.
      this.#writer.miss()
    } catch (error) {
      log.error({ err: error }, 'the records of the object store could not be reset')
    }
    this.#do(this.#follow())
  }

  #measure(): void {
    const { state, waiting, packed, objects } = this.state
    this.parts.meters.state(state, waiting, packed + objects)
  }
}
