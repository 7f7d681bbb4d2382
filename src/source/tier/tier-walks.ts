import { pause } from '../../actor/clock.js'
import { FairSlots } from '../../actor/fair-slots.js'
import type { Log } from '../../actor/log.js'
import type { LmdbCatalog } from '../../catalog/reader.js'
import type { Id } from '../../format/id.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { ObjectStore } from '../objects/object-store.js'
import { keysOf } from '../objects/small-objects.js'
import type { TierKeys } from './tier-keys.js'
import type { TierRecords } from './tier-records.js'
import type { TierWalk } from './tier-state.js'
import type { TierWriter } from './tier-writer.js'

export interface TierWalkParts {
  readonly store: ObjectStore
  readonly keys: TierKeys
  readonly records: TierRecords
  readonly writer: TierWriter
  readonly catalog: Pick<LmdbCatalog, 'attributes' | 'blobSize' | 'blobsBehind'>
  /** Brings a content from the store onto this disk; true where it is there afterwards. */
  readonly bring: (id: Id) => Promise<boolean>
  /** The disk may take more content. */
  readonly hasRoom: () => boolean
  readonly log: Log
}

/** A push waits while so many contents are on the list. */
const aheadMax = 5000
const batchMax = 256
const waitMs = 250
/** Contents that a pull brings at the same time. */
const pullsAtOnce = 8

type Counts = { -readonly [Name in 'seen' | 'moved' | 'skipped' | 'failed']: number }

/** Moves all content between this disk and the store, one way at a time. A push goes on after a restart. */
export class TierWalks {
  #walk: TierWalk | undefined
  #counts: Counts = { seen: 0, moved: 0, skipped: 0, failed: 0 }
  #abort = new AbortController()
  #running: Promise<void> = Promise.resolve()

  constructor(private readonly parts: TierWalkParts) {}

  /** The last one, or that under way. */
  get current(): TierWalk | undefined {
    return this.#walk && { ...this.#walk, ...this.#counts }
  }

  /** Takes up a push that an earlier process began. */
  resume(): void {
    if (this.parts.records.isPushing) this.#begin('push')
  }

  /** Begins a walk; a push that was broken off goes on where it was. False: the other one is under way. */
  start(kind: TierWalk['kind']): boolean {
    if (this.#walk?.state === 'running') return this.#walk.kind === kind
    if (kind === 'push' && !this.parts.records.isPushing) this.parts.records.push('begun')
    this.#begin(kind)
    return true
  }

  /** The same for an operator, whose push may exceed the daily bound. */
  order(kind: TierWalk['kind']): boolean {
    const isBegun = this.start(kind)
    if (isBegun && kind === 'push') this.parts.records.push('ordered')
    return isBegun
  }

  /** Breaks off what is under way; a push is not taken up again by itself. */
  async stop(): Promise<void> {
    const isPush = this.#walk?.state === 'running' && this.#walk.kind === 'push'
    await this.pause()
    if (isPush) this.parts.records.push('over')
  }

  /** The same; the next process takes a push up again. */
  async pause(): Promise<void> {
    this.#abort.abort()
    await this.#running
  }

  #begin(kind: TierWalk['kind']): void {
    this.#counts = { seen: 0, moved: 0, skipped: 0, failed: 0 }
    this.#walk = { kind, state: 'running', ...this.#counts }
    this.#abort = new AbortController()
    const { signal } = this.#abort
    this.#running = (kind === 'push' ? this.#push(signal) : this.#pull(signal))
      .then((refusal) => {
        if (refusal !== undefined) this.#end(kind, signal.aborted ? 'stopped' : 'failed', refusal.message)
        else this.#end(kind, signal.aborted ? 'stopped' : 'over')
      })
      .catch((error: unknown) => {
        this.parts.log.error({ err: error, kind }, 'moving content to or from the object store failed')
        this.#end(kind, 'failed', 'an error of this machine: see its log')
      })
  }

  #end(kind: TierWalk['kind'], state: TierWalk['state'], reason?: string): void {
    this.#walk = { kind, state, ...this.#counts, ...(reason === undefined ? {} : { reason }) }
    this.parts.log.info(this.#walk, 'moving content to or from the object store has ended')
  }

  /** All content on disk, in the order of its digests. */
  async #push(signal: AbortSignal): Promise<Refusal | undefined> {
    const { records, catalog, writer } = this.parts
    let after: Uint8Array | undefined = records.pushed
    while (!signal.aborted) {
      if (writer.waiting > aheadMax) {
        await pause(waitMs, signal)
        continue
      }
      const held = catalog.blobsBehind(after, batchMax)
      const last = held.at(-1)
      if (last === undefined) break
      const wanted: Id[] = []
      for (const { holder } of held) {
        this.#counts.seen += 1
        const isWanted = holder !== undefined && catalog.attributes(holder)?.verified === true
        if (isWanted && !records.has(holder)) wanted.push(holder)
        else this.#counts.skipped += 1
      }
      records.wait(wanted)
      this.#counts.moved += wanted.length
      after = last.digest
      records.push(after)
    }
    // Other content may go on coming: what waits now is what this push found.
    const drain = writer.drain()
    while (!signal.aborted && !writer.isDrained(drain)) await pause(waitMs, signal)
    if (!signal.aborted) records.push('over')
    return undefined
  }

  /** All objects of the store: those in packs, then those of their own. */
  async #pull(signal: AbortSignal): Promise<Refusal | undefined> {
    const { records, store, keys } = this.parts
    const slots = FairSlots.unbounded(pullsAtOnce)
    let after: Id | undefined
    while (!signal.aborted) {
      const ids = records.packedIds(after, batchMax)
      if (ids.length === 0) break
      after = ids.at(-1)
      const full = await this.#bringAll(ids, slots, signal)
      if (full !== undefined) return full
    }
    if (signal.aborted) return undefined
    for await (const page of keysOf(store, keys.all, undefined, signal)) {
      if (isRefusal(page)) return page
      const ids = page.flatMap((key) => keys.idOf(key) ?? [])
      const full = await this.#bringAll(ids, slots, signal)
      if (full !== undefined || signal.aborted) return full
    }
    return undefined
  }

  async #bringAll(ids: readonly Id[], slots: FairSlots, signal: AbortSignal): Promise<Refusal | undefined> {
    const { hasRoom } = this.parts
    await Promise.all(
      ids.map((id) =>
        slots.run(async () => {
          if (!signal.aborted && hasRoom()) await this.#bring(id)
        }),
      ),
    )
    if (hasRoom()) return undefined
    return refuse(
      'busy',
      'self',
      'CONTIGUOUS_DATA_CACHE_MAX_BYTES is reached: the disk takes no more content',
    )
  }

  async #bring(id: Id): Promise<void> {
    const { catalog, bring } = this.parts
    this.#counts.seen += 1
    const digest = catalog.attributes(id)?.digest
    if (digest !== undefined && catalog.blobSize(digest) !== undefined) this.#counts.skipped += 1
    else if (await bring(id)) this.#counts.moved += 1
    else this.#counts.failed += 1
  }
}
