import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { packTransactions } from '../catalog/pack.js'
import { type HeaderChain, verifiedHeader } from '../chain/verified-header.js'
import { type Id, idBytes } from '../format/id.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { tryWrite } from '../store/disk-error.js'
import { writePatiently } from '../store/patient-write.js'
import type { Agenda } from './agenda.js'
import { type Intake, sayRefused } from './chain-intake.js'
import { pendingInput, transactionAttributes } from './chain-rows.js'
import type { IndexQueue } from './index-queue.js'
import type { IngestReply, IngestRequest } from './ingest-messages.js'
import type { PruneOrder, Pruner } from './prune.js'

/** Headers requested at once by order. */
const askingMax = 64

export interface OrderParts {
  readonly chain: HeaderChain
  readonly queue: IndexQueue
  readonly bundles: Agenda
  readonly intake: Intake
  readonly pruner: Pruner
  /** Something is due. */
  readonly wake: () => void
  readonly clock: Clock
  readonly log: Log
}

/** Orders that an operator may give to the index by hand. */
export class Orders {
  readonly #abort = new AbortController()
  readonly #asking = new Set<Id>()

  constructor(private readonly parts: OrderParts) {}

  handle(request: IngestRequest): IngestReply | Refusal | Promise<IngestReply | Refusal> {
    if (request.kind === 'prune') return this.#prune(request)
    if (request.kind === 'queue-bundle') return this.#bundle(request.id)
    if (request.kind === 'queue-transaction') return this.#transaction(request.id)
    const task = this.parts.bundles.find(idBytes(request.id))
    if (task === undefined) return { kind: 'waiting', waits: false, attempts: 0 }
    return { kind: 'waiting', waits: true, attempts: task.attempts, dueMs: task.dueMs }
  }

  stop(): void {
    this.#abort.abort()
  }

  async #prune(order: PruneOrder): Promise<IngestReply | Refusal> {
    const items = await this.parts.pruner.prune(order)
    return isRefusal(items) ? items : { kind: 'pruned', items }
  }

  #bundle(id: Id): IngestReply | Refusal {
    const task = { key: idBytes(id), value: new Uint8Array(0) }
    const refused = tryWrite(() => this.parts.bundles.put([task], this.parts.clock.now()))
    if (isRefusal(refused)) return refused
    if (refused > 0) return refuse('busy', 'self', 'Bundle importer queue is full')
    this.parts.wake()
    return { kind: 'queued' }
  }

  #transaction(id: Id): IngestReply | Refusal {
    if (this.#asking.has(id)) return { kind: 'queued' }
    if (this.#asking.size >= askingMax)
      return refuse('busy', 'self', 'Too many transactions are being requested')
    this.#asking.add(id)
    void this.#ask(id)
      .catch((error: unknown) => {
        if (!this.#abort.signal.aborted)
          this.parts.log.warn({ err: error, id }, 'an ordered transaction was not indexed')
      })
      .finally(() => this.#asking.delete(id))
    return { kind: 'queued' }
  }

  async #ask(id: Id): Promise<void> {
    const { chain, queue, intake, clock, log } = this.parts
    const found = await verifiedHeader(chain, id, { signal: this.#abort.signal })
    if (isRefusal(found)) {
      log.warn({ id, reason: found.message }, 'an ordered transaction could not be fetched')
      return
    }
    const { transaction } = found
    await queue.write(() => {
      // What is in a block already stays where it is.
      if (queue.index.row(idBytes(id), false) !== undefined) return undefined
      const row = pendingInput(transaction)
      return {
        kind: 'all',
        requests: [
          { kind: 'index-pending', transactions: packTransactions([row]) },
          { kind: 'learn', attributes: [transactionAttributes(transaction, undefined)] },
        ],
      }
    })
    const remember = (): void => sayRefused(intake.rememberBundles([transaction], clock.now()), log)
    if (await writePatiently(remember, this.#abort.signal, log)) this.parts.wake()
  }
}
