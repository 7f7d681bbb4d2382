import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Meters } from '../actor/meter.js'
import type { Following, FollowingState } from '../actor/shared.js'
import type { BroughtBlock } from './supply.js'

/** Interval of the log line and of the new rate. */
const everyMs = 10_000

/** Counts blocks that are in the index now; returns how many transactions are in them. */
export function countImported(batch: readonly BroughtBlock[], meters: Meters): number {
  const transactions = batch.reduce((sum, one) => sum + one.transactions.length, 0)
  meters.of('blocks_imported_total').add(batch.length)
  meters.of('transactions_imported_total').add(transactions)
  return transactions
}

/** How fast the index grows, for operators: meters, the shared table that other threads read, and now and then a line. */
export class ImportPace {
  #sinceMs: number
  #blocks = 0
  #transactions = 0

  constructor(
    private readonly following: Following,
    private readonly meters: Meters,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {
    this.#sinceMs = clock.monotonic()
  }

  /** These blocks came in, up to `height`; nodes are at `tip`. */
  imported(batch: readonly BroughtBlock[], height: number, tip: number): void {
    this.#transactions += countImported(batch, this.meters)
    this.#blocks += batch.length
    const ms = this.clock.monotonic() - this.#sinceMs
    if (ms < everyMs) return
    const blocksPerSecond = Math.round((this.#blocks * 10_000) / ms) / 10
    const transactionsPerSecond = Math.round((this.#transactions * 10_000) / ms) / 10
    this.following.blocksPerSecond = blocksPerSecond
    const lag = Math.max(tip - height, 0)
    const etaSeconds = blocksPerSecond > 0 ? Math.round(lag / blocksPerSecond) : undefined
    if (lag > 1)
      this.log.info({ height, lag, blocksPerSecond, transactionsPerSecond, etaSeconds }, 'importing')
    this.#restart()
  }

  /** A branch of so many blocks was taken back. */
  unwound(blocks: number): void {
    this.meters.of('forks_total').add(1)
    this.meters.of('blocks_unwound_total').add(blocks)
    this.meters.of('last_fork_depth').set(blocks)
  }

  /** Reports the follower's height and state; where `state` is undefined it stays as it was. */
  stands(state: FollowingState | undefined, height: number): void {
    this.following.height = height
    this.meters.of('last_height_imported').set(height)
    if (state === undefined || state === this.following.state) return
    this.following.state = state
    this.meters.of('chain_import_halted').set(state === 'halted' ? 1 : 0)
    if (state === 'importing') {
      this.#restart()
      return
    }
    this.following.blocksPerSecond = 0
    if (state === 'following') this.log.info({ height }, 'the index holds the whole chain')
    if (state === 'finished') this.log.info({ height }, 'the last wanted block is indexed')
  }

  #restart(): void {
    this.#sinceMs = this.clock.monotonic()
    this.#blocks = 0
    this.#transactions = 0
  }
}
