import { BoundedMap } from '../../actor/bounded-map.js'
import type { Clock } from '../../actor/clock.js'
import type { Chain } from '../../chain/chain.js'
import { settledDepth } from '../../chain/weave-search.js'
import type { Id } from '../../format/id.js'
import { isRefusal } from '../../format/refusal.js'

/** Roots remembered; each takes some 150 bytes. */
const rememberedMax = 10_000

/** A fork may move what lies near the tip. */
const nearTipMs = 60_000
const settledMs = 3_600_000

/** After an answer without a height no node gets the request for so long. */
const absentMs = 1000

interface Remembered {
  /** Undefined: it is pending, or nobody could say. */
  readonly height: number | undefined
  readonly untilMs: number
}

/** In which blocks roots lie: one request to nodes for all the items of one. */
export class RootHeights {
  readonly #known = new BoundedMap<Id, Remembered>(rememberedMax)

  constructor(
    private readonly chain: Pick<Chain, 'transactionStatus'>,
    private readonly clock: Clock,
  ) {}

  /** What was heard lately, without asking anybody. */
  known(id: Id): number | undefined {
    return this.#remembered(id)?.height
  }

  /** Height of the block that holds the transaction; undefined where it is in none, or no node says so now. */
  async of(id: Id, signal: AbortSignal): Promise<number | undefined> {
    const remembered = this.#remembered(id)
    if (remembered !== undefined) return remembered.height
    const status = await this.chain.transactionStatus(id, { signal })
    if (signal.aborted) return undefined
    const isMined = !isRefusal(status) && status.kind === 'mined'
    const isSettled = isMined && status.confirmations > settledDepth
    const forMs = isSettled ? settledMs : isMined ? nearTipMs : absentMs
    const height = isMined ? status.height : undefined
    this.#known.set(id, { height, untilMs: this.clock.monotonic() + forMs })
    return height
  }

  #remembered(id: Id): Remembered | undefined {
    const found = this.#known.get(id)
    return found === undefined || this.clock.monotonic() >= found.untilMs ? undefined : found
  }
}
