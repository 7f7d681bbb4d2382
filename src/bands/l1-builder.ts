import { type Clock, isWithin } from '../actor/clock.js'
import type { ChainIndex } from '../catalog/index-reader.js'
import { pendingHeight } from '../catalog/row-key.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import { gridBlocks, type L1Band, l1Ranges, readL1Band } from '../parquet/l1-band.js'
import { buildL1 } from '../parquet/l1-build.js'
import type { BandStore } from './band-store.js'
import { l1Kind, type StoredBand } from './publication.js'

export interface L1Schedule {
  /** Name of the publisher, from which a part of the bands' ids is derived. */
  readonly publisher: string
  readonly signatures: boolean
  /** Blocks at the index's end that a fork may still take away. */
  readonly forkDepth: number
  /** Interval after which the unfinished band at the tip is rebuilt, and one that was refused is tried again. */
  readonly everyMs: number
}

/** Builds the Parquet bands of all heights that the index holds and that no fork can change. */
export class L1Builder {
  /** When a range was refused, by its first height: at most as many as there are ranges. */
  readonly #refusedMs = new Map<number, number>()

  constructor(
    private readonly index: ChainIndex,
    private readonly bandStore: BandStore,
    private readonly clock: Clock,
    private readonly schedule: L1Schedule,
  ) {}

  /**
   * Builds up to `max` of the bands that are due, lowest first, each put in place as it is done; `built` hears of
   * each. A new band supersedes those whose heights lie in its own. A range that is refused does not stop the
   * following ones; the first refusal is returned at the end.
   */
  async build(
    max: number,
    built: (id: string, transactions: number) => void,
    signal?: AbortSignal,
  ): Promise<Refusal | undefined> {
    this.index.refresh()
    const [lowest] = this.index.blocks(0, pendingHeight - 1, false, 1)
    const top = (this.index.topHeight() ?? -1) - this.schedule.forkDepth - 1
    if (lowest === undefined) return undefined
    const there = await this.#stored()
    let count = 0
    let refusal: Refusal | undefined
    for (const [from, to] of l1Ranges(lowest.height, top)) {
      if (count >= max) break
      const inside = there.filter(
        ({ band: { heightRange } }) => heightRange[0] >= from && heightRange[1] <= to,
      )
      if (!this.#isDue(from, to, inside)) continue
      const made = await this.#build(from, to, inside, signal)
      if (isRefusal(made)) {
        this.#refusedMs.set(from, this.clock.monotonic())
        refusal ??= made
        continue
      }
      built(made.id, made.band.tables.transactions.rows)
      count += 1
    }
    return refusal
  }

  #isDue(from: number, to: number, inside: readonly StoredL1Band[]): boolean {
    const { everyMs } = this.schedule
    if (inside.some(({ band: { heightRange } }) => heightRange[0] === from && heightRange[1] === to))
      return false
    const refusedMs = this.#refusedMs.get(from)
    if (refusedMs !== undefined && this.clock.monotonic() - refusedMs < everyMs) return false
    const isCutShort = (to + 1) % gridBlocks.part !== 0
    const isYoung = ({ band }: StoredL1Band): boolean =>
      isWithin(this.clock.now(), Date.parse(band.createdAt), everyMs)
    return !isCutShort || !inside.some(isYoung)
  }

  async #build(
    from: number,
    to: number,
    inside: readonly StoredL1Band[],
    signal: AbortSignal | undefined,
  ): ReturnType<typeof buildL1> {
    const draft = await this.bandStore.draft()
    const { publisher, signatures } = this.schedule
    const order = { from, to, publisher, signatures, supersedes: inside.map(({ id }) => id) }
    try {
      const made = await buildL1(this.index, draft, order, this.clock, signal)
      if (!isRefusal(made)) await this.bandStore.place(draft, 'own', l1Kind.index, made.id)
      return made
    } finally {
      await this.bandStore.discard(draft)
    }
  }

  async #stored(): Promise<StoredL1Band[]> {
    const found = []
    for (const stored of await this.bandStore.list('own')) {
      if (stored.index !== l1Kind.index) continue
      const band = await readL1Band(stored.folder)
      if (!isRefusal(band)) found.push({ ...stored, band })
    }
    return found
  }
}

interface StoredL1Band extends StoredBand {
  readonly band: L1Band
}
