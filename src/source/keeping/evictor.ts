import { type Clock, isWithin, type Timer } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import type { LmdbCatalog } from '../../catalog/reader.js'
import type { BlobStore } from '../../store/blobs.js'
import type { BlobCache } from './blob-cache.js'
import type { Pins } from './pins.js'

export interface EvictionOptions {
  /** Bytes of blobs on disk; beyond, the longest unused go. */
  readonly maxBytes: number
  /** Blobs unused for so long go; absent: never by age. */
  readonly maxAgeSeconds?: number
  /** Between two looks. */
  readonly everyMs: number
  /**
   * What was touched within this time is not evicted while the bound is hardly passed. Edge threads report what they serve about
   * each second, and the keeper writes a touch only so often: this must be some times the larger of the two.
   */
  readonly graceMs: number
  /** Files without a record are removed once they are this old. */
  readonly orphanMs: number
}

/** The bound is looked at so often: what comes meanwhile lies beyond it. */
const boundMs = 1000

/** Share of the bound. When it is exceeded by more, only what came just now is spared: else a fast source would fill the disk. */
const slackShare = 1 / 64

/** What came within this time may not have been opened yet by those who requested it. */
const newMs = 3000

/** Blobs looked at in one go: bounds the time between two messages of the thread. */
const batch = 256

/** Keeps the blobs on disk within bounds, the least recently used first, and removes files that nothing knows. */
export class Evictor {
  #timers: Timer[] = []
  #underway: Promise<void> = Promise.resolve()
  #isLooking = false
  #folder = 0

  constructor(
    private readonly store: BlobStore,
    private readonly catalog: LmdbCatalog,
    private readonly blobCache: BlobCache,
    private readonly log: Log,
    private readonly clock: Clock,
    private readonly options: EvictionOptions,
    /** Bytes of the segments: they have a part of the same bound. */
    private readonly segmentBytes: () => number = () => 0,
    /** What stays, whatever room is needed. */
    private readonly pins: Pick<Pins, 'has'> = { has: () => false },
  ) {}

  start(): void {
    const { everyMs } = this.options
    this.#timers = [
      this.clock.every(everyMs, () => {
        this.#underway = this.#underway.then(() => this.turn())
      }),
      this.clock.every(boundMs, () => {
        if (this.#overBytes() > 0 && !this.#isLooking)
          this.#underway = this.#underway.then(() => this.#tried(() => this.evict()))
      }),
    ]
  }

  /** Bytes beyond the bound; below zero where there is room. */
  #overBytes(): number {
    return this.catalog.blobBytes() + this.segmentBytes() - this.options.maxBytes
  }

  async stop(): Promise<void> {
    for (const timer of this.#timers) timer.cancel()
    await this.#underway
  }

  /** One look: evicts down to the bounds, and sweeps one of the 256 folders for files without a record. */
  async turn(): Promise<void> {
    await this.#tried(async () => {
      await this.evict()
      await this.#sweep()
    })
  }

  /** One after the other. Never rejects. */
  async #tried(act: () => Promise<unknown>): Promise<void> {
    this.#isLooking = true
    try {
      await act()
    } catch (error) {
      this.log.error({ err: error }, 'content could not be evicted from the cache: tried again')
    } finally {
      this.#isLooking = false
    }
  }

  /** Removes blobs until the bounds hold or the rest is in use. Resolves with the number of blobs removed. */
  async evict(): Promise<number> {
    const { maxBytes, maxAgeSeconds, graceMs } = this.options
    let removed = 0
    for (;;) {
      const now = Math.max(this.clock.now(), this.catalog.lastTouchMs() ?? 0)
      const oldest = this.catalog.leastTouched(batch)
      const tooOld = maxAgeSeconds === undefined ? Number.NEGATIVE_INFINITY : now - maxAgeSeconds * 1000
      const before = removed
      const spared: Uint8Array[] = []
      for (const { digest, touchedMs } of oldest) {
        const overBytes = this.#overBytes()
        const sparedMs = overBytes > maxBytes * slackShare ? Math.min(newMs, graceMs) : graceMs
        if (touchedMs > now - sparedMs || !(overBytes > 0 || touchedMs < tooOld)) return removed
        if (this.pins.has(digest)) {
          spared.push(digest)
          continue
        }
        if (!(await this.blobCache.drop(digest, touchedMs))) return removed
        removed += 1
      }
      // They count as used, so that the next look does not begin with them.
      if (spared.length > 0) await this.blobCache.spare(spared)
      if (before === removed) return removed
    }
  }

  async #sweep(): Promise<void> {
    const now = this.clock.now()
    for await (const { digest, modifiedMs } of this.store.list(this.#folder)) {
      const recorded = (): boolean => this.catalog.blob(digest) !== undefined
      if (!isWithin(now, modifiedMs, this.options.orphanMs) && !recorded())
        await this.blobCache.sweep(digest, recorded)
    }
    this.#folder = (this.#folder + 1) % 256
  }
}
