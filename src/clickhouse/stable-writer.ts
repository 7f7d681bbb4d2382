import type { Clock, Timer } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { Outage } from '../actor/outage.js'
import type { ChainIndex } from '../catalog/index-reader.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import type { ClickhouseClient } from './clickhouse-client.js'
import { type StableHeights, type WholeHeights, wholeHeights } from './heights.js'
import { ensureTables, IndexPush } from './index-push.js'
import { fillWholeRows } from './whole-rows.js'

/** What a writer of the index says of itself. */
export interface WriterState {
  /** This machine writes now. */
  readonly leads: boolean
  /** Up to this height everything is in ClickHouse, as far as is known; 0: nothing, or not known. */
  readonly height: number
  /** Stable heights of the index here that are not there. */
  readonly lag: number
  /** Rows that were written since the start, and rounds that failed. */
  readonly rows: number
  readonly failures: number
  /** Milliseconds since 1970, when a look or a batch was last done without a failure, at first the start. */
  readonly wellMs: number
}

export interface WriterOptions {
  readonly client: Pick<ClickhouseClient, 'ask' | 'write'>
  readonly index: ChainIndex
  /** Whether this machine is the one of all that writes. Rejects with an Error where that cannot be decided. */
  readonly leads: () => Promise<boolean>
  /** Blocks at the top that may still be replaced. */
  readonly forkDepth: number
  readonly clock: Clock
  readonly log: Log
  readonly onState: (state: WriterState) => void
  /** How often it looks for more. 1,000 unless given. */
  readonly everyMs?: number
}

/** What is there is read so often where nobody writes: it may be an older state that was restored. */
const readEachMs = 60_000
const down = 'the index cannot be written into ClickHouse: older blocks stay in the index here'

/**
 * The stable heights of the index here that are to be in ClickHouse: those behind what is there, or the wanted ones. `to` is
 * below `from` where it has all. Undefined: nothing here is stable.
 */
export function missingHeights(
  index: ChainIndex,
  forkDepth: number,
  there: StableHeights | undefined,
  wanted: { readonly from?: number | undefined; readonly to?: number | undefined } = {},
): StableHeights | undefined {
  const top = index.topHeight()
  if (top === undefined || top < forkDepth) return undefined
  const to = Math.min(wanted.to ?? top, top - forkDepth)
  const lowest = index.linkedDown(to, to + 1)
  const from = wanted.from ?? (there === undefined || there.to + 1 < lowest ? lowest : there.to + 1)
  return { from: Math.max(from, lowest), to }
}

/**
 * Writes stable heights into ClickHouse as they come, on one machine of all. Whether it leads is seen before each look and each
 * record, so that a machine that stood still and was followed meanwhile records nothing.
 */
export class StableWriter {
  readonly #outage: Outage
  readonly #push: IndexPush
  #timer: Timer | undefined
  #running: Promise<void> | undefined
  #isClosed = false
  #hasTables = false
  #there: WholeHeights | undefined
  #readMs = Number.NEGATIVE_INFINITY
  #isApart = false
  #state: WriterState

  constructor(private readonly options: WriterOptions) {
    const { client, index, clock, log } = options
    this.#state = { leads: false, height: 0, lag: 0, rows: 0, failures: 0, wellMs: clock.now() }
    this.#outage = new Outage(log, down, 'the index is written into ClickHouse again')
    this.#push = new IndexPush(client, index, clock)
  }

  get state(): WriterState {
    return this.#state
  }

  /** Looks at once, and then again and again. */
  start(): void {
    void this.look()
    this.#timer = this.options.clock.every(this.options.everyMs ?? 1000, () => void this.look())
  }

  /** Writes what is stable and not there. One look at a time. Rejects for bugs only. */
  look(): Promise<void> {
    if (this.#isClosed) return Promise.resolve()
    this.#running ??= this.#round().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  /** Resolves when nothing is under way. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#timer?.cancel()
    await this.#running
    this.#say({ leads: false })
  }

  async #round(): Promise<void> {
    const { leads } = this.options
    try {
      const isLeading = await leads()
      if (isLeading !== this.#state.leads) {
        this.options.log.info({ isLeading }, 'whether this machine writes the index into ClickHouse')
        // Another one may have written meanwhile.
        this.#readMs = Number.NEGATIVE_INFINITY
        this.#hasTables = false
      }
      this.#say({ leads: isLeading })
      const done = isLeading ? await this.#write() : 'done'
      if (isRefusal(done)) this.#failed(done.message)
      else this.#well()
    } catch (error) {
      if (!(error instanceof Error) || error instanceof TypeError || error instanceof RangeError) throw error
      this.#say({ leads: false })
      this.#failed(error.message)
    }
  }

  async #write(): Promise<'done' | Refusal> {
    const { client, index, forkDepth, leads, clock } = this.options
    const ready = await this.#known(client)
    if (isRefusal(ready)) return ready
    index.refresh()
    const range = missingHeights(index, forkDepth, this.#there)
    if (range === undefined) return 'done'
    this.#say({
      height: this.#there?.to ?? 0,
      lag: Math.max(0, range.to - (this.#there?.to ?? range.from - 1)),
    })
    if (range.to < range.from || this.#hasGap(range)) return 'done'
    const before = this.#state.rows
    const done = await this.#push.run(
      range,
      ({ rows, height }) =>
        this.#say({ rows: before + rows, height, lag: range.to - height, wellMs: clock.now() }),
      async () => !this.#isClosed && (await leads()),
    )
    // What is there is read again: others may have written, too.
    this.#readMs = Number.NEGATIVE_INFINITY
    if (isRefusal(done) && done.refused === 'unknown') this.#hasTables = false
    if (done === 'replaced') this.#say({ leads: false })
    return isRefusal(done) ? done : 'done'
  }

  /** Makes the tables, and reads what is there. */
  async #known(client: WriterOptions['client']): Promise<'done' | Refusal> {
    if (!this.#hasTables) {
      const made = await ensureTables(client)
      if (isRefusal(made)) return made
      const filled = await fillWholeRows(client, async () => {
        this.#say({ wellMs: this.options.clock.now() })
        return !this.#isClosed && (await this.options.leads())
      })
      if (isRefusal(filled)) return filled
      this.#hasTables = true
    }
    const nowMs = this.options.clock.monotonic()
    if (nowMs - this.#readMs < readEachMs) return 'done'
    const there = await wholeHeights(client)
    if (isRefusal(there)) {
      if (there.refused === 'unknown') this.#hasTables = false
      return there
    }
    // A backup may have been made before there were all tables.
    if ((there?.version ?? 0) < (this.#there?.version ?? 0)) this.#hasTables = false
    this.#there = there
    this.#readMs = nowMs
    return 'done'
  }

  /** Heights between are missing on this machine: readers would lose those below. */
  #hasGap(range: StableHeights): boolean {
    const there = this.#there
    const hasGap = there !== undefined && range.from > there.to + 1
    if (hasGap && !this.#isApart)
      this.options.log.warn(
        { from: range.from, there: there.to },
        'the index here begins above what ClickHouse has: nothing is written. See sluice index push --from',
      )
    this.#isApart = hasGap
    return hasGap
  }

  #well(): void {
    this.#say({ wellMs: this.options.clock.now() })
    this.#outage.well()
  }

  #failed(reason: string): void {
    this.#say({ failures: this.#state.failures + 1 })
    this.#outage.failed({ reason })
  }

  #say(change: Partial<WriterState>): void {
    this.#state = { ...this.#state, ...change }
    this.options.onState(this.#state)
  }
}
