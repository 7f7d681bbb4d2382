import { setImmediate as turn } from 'node:timers/promises'
import { type Refusal, refuse } from '../format/refusal.js'
import type { IndexQueue } from './index-queue.js'

/** Rows looked at in one step, and removed in one message at most: some 10 ms of the keeper's time. */
const stepRows = 1000

export interface PruneOrder {
  /** Both inclusive. Blocks that a fork can still replace are left out. */
  readonly from: number
  readonly to: number
  /** Only what was first seen before this second. */
  readonly beforeSeconds: number
}

/**
 * Takes data items out of the index, transactions and blocks stay: for operators who have them in another database.
 * Queries and look-ups of this gateway then do not find them; content that is cached stays, and a bundle that is
 * opened again brings them back.
 */
export class Pruner {
  #busy = false

  constructor(
    private readonly queue: IndexQueue,
    private readonly forkDepth: number,
    private readonly stopped: AbortSignal,
  ) {}

  /** Resolves with the number of items that are gone. Refused `busy` while another one runs, and where the thread stops. */
  async prune(order: PruneOrder): Promise<number | Refusal> {
    if (this.#busy) return refuse('busy', 'self', 'Another pruning is under way')
    this.#busy = true
    try {
      return await this.#prune(order)
    } catch (error) {
      if (!this.stopped.aborted) throw error
      return refuse('busy', 'self', 'The gateway stops: what is pruned so far stays pruned')
    } finally {
      this.#busy = false
    }
  }

  async #prune({ from, to, beforeSeconds }: PruneOrder): Promise<number> {
    const { index } = this.queue
    let removed = 0
    let after: Uint8Array | undefined
    for (;;) {
      index.refresh()
      const last = Math.min(to, (index.topHeight() ?? -1) - this.forkDepth)
      if (from > last) return removed
      const rows = index.stretch(from, last, after, stepRows, false)
      after = rows.at(-1)?.key
      if (after === undefined) return removed
      const old = rows.filter(({ isItem, seenSeconds }) => isItem && seenSeconds < beforeSeconds)
      const keys = Buffer.concat(old.map(({ key }) => key))
      if (keys.length === 0) await turn()
      else removed += (await this.queue.write(() => ({ kind: 'remove-items', keys })))?.removed ?? 0
      this.stopped.throwIfAborted()
    }
  }
}
