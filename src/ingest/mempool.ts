import type { Log } from '../actor/log.js'
import { packTransactions } from '../catalog/pack.js'
import type { Chain } from '../chain/chain.js'
import { type Id, idBytes } from '../format/id.js'
import { isRefusal } from '../format/refusal.js'
import { diskOutage } from '../store/disk-error.js'
import { pendingInput, transactionAttributes } from './chain-rows.js'
import type { IndexQueue } from './index-queue.js'
import { Rounds } from './rounds.js'

export interface MempoolOptions {
  readonly everyMs: number
  /** Transactions looked at each time; the rest is looked at next time. */
  readonly atOnceMax: number
}

export interface MempoolParts {
  readonly chain: Pick<Chain, 'pending' | 'pendingTransaction'>
  readonly queue: IndexQueue
  readonly log: Log
}

/** Makes transactions known that wait for a block. A node that refuses gets the next request all the same. */
export class Mempool {
  readonly #rounds: Rounds

  constructor(
    private readonly parts: MempoolParts,
    private readonly options: MempoolOptions,
  ) {
    const round = async (signal: AbortSignal): Promise<number> => {
      await this.#look(signal)
      return this.options.everyMs
    }
    this.#rounds = new Rounds(round, diskOutage(parts.log, 'transactions without a block'))
  }

  /** Rejects where the catalog is lost: the thread must end. */
  run(): Promise<void> {
    return this.#rounds.run()
  }

  stop(): Promise<void> {
    return this.#rounds.stop()
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { chain, queue, log } = this.parts
    const ids = await chain.pending({ signal })
    if (isRefusal(ids)) {
      log.debug({ reason: ids.message }, 'no node answered which transactions are pending')
      return
    }
    queue.index.refresh()
    const unknown = ids.filter((id) => queue.index.row(idBytes(id), false) === undefined)
    for (const id of unknown.slice(0, this.options.atOnceMax)) await this.#learn(id, signal)
  }

  async #learn(id: Id, signal: AbortSignal): Promise<void> {
    const { chain, queue } = this.parts
    const transaction = await chain.pendingTransaction(id, { signal })
    if (isRefusal(transaction) || signal.aborted) return
    const row = pendingInput(transaction)
    const attributes = [transactionAttributes(transaction, undefined)]
    await queue.write(() => ({
      kind: 'all',
      requests: [
        { kind: 'index-pending', transactions: packTransactions([row]) },
        { kind: 'learn', attributes },
      ],
    }))
  }
}
