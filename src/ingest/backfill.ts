import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Meters } from '../actor/meter.js'
import { isRefusal } from '../format/refusal.js'
import { diskOutage } from '../store/disk-error.js'
import { pauseMs } from './agenda.js'
import { type Intake, sayRefused } from './chain-intake.js'
import type { IndexQueue } from './index-queue.js'
import { countImported } from './pace.js'
import { Rounds } from './rounds.js'
import type { BroughtBlock, Supply } from './supply.js'

export interface BackfillParts {
  /** Not the follower's: the backfill goes downwards. */
  readonly supply: Supply
  readonly queue: IndexQueue
  readonly intake: Intake
  readonly meters: Meters
  /** Bundles are on the agenda, and their blocks in the index. */
  readonly onImported: () => void
  readonly clock: Clock
  readonly log: Log
}

/** Blocks brought and written together. */
const batchMax = 20
/** Keys looked at in one turn: a few milliseconds. */
const looksMax = 10_000
const idleMs = 60_000
const retryMs = { first: 1000, max: 60_000 }

/**
 * Fills gaps of the index between its first wanted block and its top, after the operator lowered `START_HEIGHT`, and where
 * blocks were removed because their rows were damaged (src/catalog/segment-mending.ts). It goes down
 * from the block above a gap. Each block must be the one that the block above names as its previous, so that the index stays
 * one chain. The next process finds in the index where to continue.
 */
export class Backfill {
  readonly #rounds: Rounds
  /** From the top of the index down to this height no block is missing. */
  #linked: number | undefined
  /** How often blocks were dropped when that was so. */
  #forks = 0
  #failures = 0
  #filled = 0

  constructor(
    private readonly parts: BackfillParts,
    /** The first block that is wanted; undefined: only blocks are that were dropped because of damage. */
    private readonly first: number | undefined,
  ) {
    this.#rounds = new Rounds((signal) => this.#round(signal), diskOutage(parts.log, 'older blocks'))
  }

  /** Rejects where the catalog is lost: the thread must end. */
  run(): Promise<void> {
    return this.#rounds.run()
  }

  async stop(): Promise<void> {
    this.parts.supply.clear()
    await this.#rounds.stop()
  }

  async #round(signal: AbortSignal): Promise<number> {
    const { index } = this.parts.queue
    index.refresh()
    // A fork may have removed the block at which the last round stopped, and damage any other one.
    const { forks } = index
    const known =
      this.#linked !== undefined && forks === this.#forks && index.block(this.#linked) !== undefined
    const from = known ? this.#linked : index.topHeight()
    this.#forks = forks
    const first = this.first ?? index.lowestMended
    if (from === undefined || first === undefined) return idleMs
    this.#linked = index.linkedDown(from, looksMax)
    if (this.#linked <= first) return this.#rest()
    if (this.#linked === from - looksMax + 1) return 0
    const high = this.#linked - 1
    const blocks = await this.#bring(Math.max(first, high - batchMax + 1), high)
    if (signal.aborted) return 0
    if (typeof blocks !== 'string' && (await this.#write(blocks, high))) {
      this.#failures = 0
      return 0
    }
    const reason = typeof blocks === 'string' ? blocks : 'nodes have another block there'
    if (this.#failures === 0)
      this.parts.log.warn({ height: high, reason }, 'an older block could not be fetched: tried again later')
    this.parts.supply.clear()
    this.#failures += 1
    return pauseMs(this.#failures - 1, retryMs.first, retryMs.max)
  }

  #rest(): number {
    if (this.#filled > 0)
      this.parts.log.info({ blocks: this.#filled }, 'older blocks were added to the index')
    this.#filled = 0
    return idleMs
  }

  /** The blocks between two heights (inclusive), the lowest first, or why there is one that could not be had. */
  async #bring(low: number, high: number): Promise<BroughtBlock[] | string> {
    const blocks: BroughtBlock[] = []
    for (let height = low; height <= high; height += 1) {
      const brought = await this.parts.supply.take(height, high)
      if (isRefusal(brought)) return brought.message
      blocks.push(brought)
    }
    this.parts.supply.drop(high)
    return blocks
  }

  /** Writes blocks that lead up to the one above `high`; false where they do not. */
  async #write(blocks: readonly BroughtBlock[], high: number): Promise<boolean> {
    const { queue, intake, clock, meters, log } = this.parts
    const leads = (): boolean =>
      blocks.every(({ block }, at) => {
        const above = blocks[at + 1]?.block.previous ?? queue.index.block(high + 1)?.previous
        return above === block.hash
      })
    queue.index.refresh()
    if (!leads()) return false
    sayRefused(intake.remember(blocks, clock.now()), log)
    const written = await queue.write(() => (leads() ? intake.blockWords(blocks) : undefined))
    if (written === undefined) return false
    countImported(blocks, meters)
    this.#filled += blocks.length
    this.parts.onImported()
    return true
  }
}
