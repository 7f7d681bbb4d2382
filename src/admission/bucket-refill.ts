import type { Clock, Timer } from '../actor/clock.js'
import { ticksPerSecond } from './bucket-table.js'
import type { BucketKind, BucketRules } from './buckets.js'
import type { KeptTable } from './kept-table.js'

/**
 * The whole table is swept once in ten minutes. That is enough, because new clients can replace full buckets at any
 * time.
 */
const sweepTicks = 600 * ticksPerSecond

/** Advances the time of both tables, which refills their buckets, and frees those that are full. One thread has it. */
export class BucketRefill {
  readonly #timer: Timer
  readonly #startedMs: number
  readonly #swept: Record<BucketKind, number> = { ip: 0, resource: 0 }

  constructor(
    private readonly tables: Readonly<Record<BucketKind, KeptTable>>,
    private readonly clock: Clock,
  ) {
    this.#startedMs = clock.monotonic()
    this.#timer = clock.every(1000 / ticksPerSecond, () => this.tick())
  }

  /** Refills by the time that went by, in steps of 100 ms. */
  tick(): void {
    const ticks = Math.floor(((this.clock.monotonic() - this.#startedMs) * ticksPerSecond) / 1000)
    for (const kind of ['ip', 'resource'] as const) {
      const table = this.tables[kind]
      table.tick(ticks)
      const blocks = Math.ceil(table.blocks / sweepTicks)
      table.sweep(this.#swept[kind], blocks)
      this.#swept[kind] = (this.#swept[kind] + blocks) % table.blocks
    }
  }

  /** From now on buckets have these sizes, and are refilled so fast. */
  use(rules: Readonly<Record<BucketKind, BucketRules>>): void {
    this.tick()
    for (const kind of ['ip', 'resource'] as const) this.tables[kind].use(rules[kind])
  }

  close(): void {
    this.#timer.cancel()
  }
}
