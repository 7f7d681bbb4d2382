import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Meters } from '../actor/meter.js'
import type { Following } from '../actor/shared.js'
import type { Chain } from '../chain/chain.js'
import { type HeaderChain, verifiedHeader } from '../chain/verified-header.js'
import { idOfBytes } from '../format/id.js'
import { isRefusal } from '../format/refusal.js'
import type { Transaction } from '../format/transaction.js'
import { diskOutage } from '../store/disk-error.js'
import { type Agenda, pauseMs, type Task } from './agenda.js'
import { type Intake, type Missing, sayRefused } from './chain-intake.js'
import type { IndexQueue } from './index-queue.js'
import { allEnded, Rounds } from './rounds.js'

export interface RepairParts {
  readonly chain: HeaderChain & Pick<Chain, 'transactionOffset'>
  readonly agenda: Agenda
  readonly intake: Intake
  readonly queue: IndexQueue
  readonly following: Following
  readonly meters: Meters
  readonly onRepaired: () => void
  readonly clock: Clock
  readonly log: Log
}

/** Missing transactions requested at once. */
const atOnce = 16
const lookEveryMs = 1000
const retryMs = { first: 1000, max: 6 * 3_600_000 }

/** Asks again for transactions that a block lists and no node gave, for as long as the block is in the index. */
export class Repair {
  readonly #rounds: Rounds

  constructor(private readonly parts: RepairParts) {
    const disk = diskOutage(parts.log, 'missing transactions')
    this.#rounds = new Rounds((signal) => this.#round(signal), disk)
  }

  /** Rejects where the catalog is lost: the thread must end. */
  run(): Promise<void> {
    return this.#rounds.run()
  }

  stop(): Promise<void> {
    return this.#rounds.stop()
  }

  async #round(signal: AbortSignal): Promise<number> {
    const { agenda, clock, following } = this.parts
    const tasks = agenda.due(clock.now(), atOnce)
    await allEnded(tasks.map((task) => this.#repair(task, signal)))
    following.missing = agenda.count
    return tasks.length === 0 ? lookEveryMs : 0
  }

  async #repair(task: Task, signal: AbortSignal): Promise<void> {
    const { agenda, chain, clock, queue, intake, log, meters } = this.parts
    const { height, block, index } = JSON.parse(Buffer.from(task.value).toString()) as Missing
    const id = idOfBytes(task.key.subarray(4))
    const isWanted = (): boolean => queue.index.block(height)?.id === block
    queue.index.refresh()
    // It was put on the agenda before its block was indexed. So the block may not be there yet, or may be gone for
    // good.
    if (!isWanted() && task.attempts > 8) return agenda.done(task)
    const found = await verifiedHeader(chain, id, { signal })
    if (signal.aborted) return
    if (isRefusal(found)) {
      log.debug({ id, height, reason: found.message }, 'a transaction is still missing')
      agenda.later(task, clock.now() + pauseMs(task.attempts, retryMs.first, retryMs.max))
      return
    }
    const { transaction } = found
    const placed = { ...found, index, weaveEnd: await this.#weaveEnd(transaction, signal) }
    sayRefused(intake.rememberBundles([transaction], clock.now()), log)
    if (isWanted()) intake.announce(height, [placed])
    const done = await queue.write(() => (isWanted() ? intake.lateWords(height, [placed]) : undefined))
    if (done === undefined) {
      agenda.later(task, clock.now() + pauseMs(task.attempts, retryMs.first, retryMs.max))
      return
    }
    agenda.done(task)
    meters.of('transactions_repaired_total').add(1)
    log.info({ id, height }, 'a missing transaction was indexed')
    this.parts.onRepaired()
  }

  /** The end in the weave as a node states it, not proven: chunks are proven when they are read from there. */
  async #weaveEnd({ id, dataSize }: Transaction, signal: AbortSignal): Promise<number> {
    if (dataSize === 0) return 0
    const place = await this.parts.chain.transactionOffset(id, { signal })
    return isRefusal(place) || place.size !== dataSize ? 0 : place.end
  }
}
