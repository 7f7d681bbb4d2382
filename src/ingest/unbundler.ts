import type { ItemFilter } from '../../config/item-filter.js'
import type { Clock, Timer } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Meters } from '../actor/meter.js'
import type { Following } from '../actor/shared.js'
import { type Id, idOfBytes } from '../format/id.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { isBundle } from '../source/learned.js'
import { type Agenda, pauseMs, type Task } from './agenda.js'
import type { RootStream } from './bundle-bytes.js'
import type { Desk } from './desk.js'
import { matches } from './filter.js'
import { type BatchHearer, ItemBatch } from './item-batch.js'
import type { ItemJudge } from './item-judge.js'
import { itemSubject } from './rows.js'
import { BundleWalk } from './walk.js'
import type { Webhooks } from './webhooks.js'

export interface UnbundlerOptions {
  /** Bundles that are opened. */
  readonly unbundle: ItemFilter
  /** Items that are indexed and served. */
  readonly index: ItemFilter
  /** Bundles read at once. */
  readonly atOnce: number
  readonly depthMax: number
  /** Entries of one bundle and those open inside it: some 200 bytes each. */
  readonly entriesMax: number
  /** Pause after the first failure; doubles up to `retryMaxMs`. */
  readonly retryMs: number
  readonly retryMaxMs: number
  /** Looks for a root that is in no block known here: its branch may be gone. */
  readonly orphanLooks: number
}

export interface UnbundlerParts {
  readonly agenda: Agenda
  readonly desk: Desk
  /** The proven data of a root. */
  readonly open: (id: Id, signal: AbortSignal) => Promise<RootStream | Refusal>
  readonly judge: ItemJudge
  /** Absent: nobody is told of items. */
  readonly webhooks?: Webhooks | undefined
  readonly following: Following
  readonly meters: Meters
  readonly clock: Clock
  readonly log: Log
}

interface Report {
  items: number
  bad: number
  nested: number
  firstBad?: string
}

/** Why a bundle was not read to its end. */
interface Failure {
  readonly refusal: Refusal
  /** `bundle`: its bytes are what they are. `orphan`: no block here has it. `source`: its bytes could not be had. */
  readonly cause: 'bundle' | 'orphan' | 'source'
}

/** Opens bundles of indexed transactions, a few at once, each as a stream, and tells the catalog of every item in them. */
export class Unbundler {
  readonly #abort = new AbortController()
  readonly #running = new Map<string, Promise<void>>()
  #timer: Timer | undefined
  #lost: (error: unknown) => void = () => undefined

  constructor(
    private readonly parts: UnbundlerParts,
    private readonly options: UnbundlerOptions,
  ) {}

  /** Takes up what an earlier process left. Only ever rejects, where the catalog is lost: the thread must end. */
  run(): Promise<never> {
    this.wake()
    return new Promise((_, reject) => {
      this.#lost = reject
    })
  }

  async stop(): Promise<void> {
    this.#abort.abort()
    this.#timer?.cancel()
    await Promise.all(this.#running.values())
  }

  /** Looks at the agenda: something may be due. */
  wake(): void {
    if (this.#abort.signal.aborted) return
    const { agenda, clock, following } = this.parts
    this.#timer?.cancel()
    const free = this.options.atOnce - this.#running.size
    for (const task of agenda.due(clock.now(), free, this.#running)) this.#start(task)
    following.bundlesWaiting = agenda.count
    const nextMs = agenda.nextMs
    if (nextMs === undefined || this.#running.size >= this.options.atOnce) return
    this.#timer = clock.after(Math.min(Math.max(nextMs - clock.now(), 100), 60_000), () => this.wake())
  }

  #start(task: Task): void {
    const name = Buffer.from(task.key).toString('hex')
    const work = this.#work(task)
      .catch((error: unknown) => {
        if (!this.#abort.signal.aborted) this.#lost(error)
      })
      .finally(() => {
        this.#running.delete(name)
        this.wake()
      })
    this.#running.set(name, work)
  }

  async #work(task: Task): Promise<void> {
    const id = idOfBytes(task.key)
    const { agenda, clock, log, meters } = this.parts
    const report: Report = { items: 0, bad: 0, nested: 0 }
    const failure = await this.#unbundle(id, report)
    if (this.#abort.signal.aborted) return
    meters.of('data_items_bad_total').add(report.bad)
    if (failure === undefined) {
      agenda.done(task)
      meters.of('bundles_unbundled_total').add(1)
      log[report.bad > 0 ? 'warn' : 'debug']({ id, ...report }, 'unbundled')
      return
    }
    const reason = failure.refusal.message
    const orphan = failure.cause === 'orphan' && task.attempts + 1 >= this.options.orphanLooks
    if (orphan || failure.cause === 'bundle') {
      agenda.done(task)
      meters.of('bundles_failed_total').add(1)
      log.warn({ id, reason, ...report }, 'a bundle was given up')
      return
    }
    const { retryMs, retryMaxMs } = this.options
    const delayMs = pauseMs(task.attempts, retryMs, retryMaxMs)
    agenda.later(task, clock.now() + delayMs)
    meters.of('bundles_retried_total').add(1)
    log.debug({ id, reason, delayMs }, 'a bundle is tried again later')
  }

  async #unbundle(id: Id, report: Report): Promise<Failure | undefined> {
    const bad = (item: Id, refusal: Refusal): void => {
      report.bad += 1
      report.firstBad ??= `${item}: ${refusal.message}`
    }
    const batch = this.#batch(id, report, bad)
    if (!batch.isRootKnown()) {
      const refusal = refuse('unknown', 'upstream', 'the bundle is in no block of the index')
      return { refusal, cause: 'orphan' }
    }
    const root = await this.parts.open(id, this.#abort.signal)
    if (isRefusal(root)) return { refusal: root, cause: 'source' }
    const walk = this.#walk(id, root.sizeBytes, batch, bad)
    // One batch is judged and told while the next gathers.
    let telling = Promise.resolve()
    try {
      for await (const piece of root.bytes) {
        if (isRefusal(piece)) return { refusal: piece, cause: 'source' }
        walk.push(piece)
        if (!batch.isFull) continue
        await telling
        telling = batch.flush()
        telling.catch(() => 'thrown where it is awaited')
      }
      const refusal = walk.end()
      await telling
      telling = batch.flush()
      return refusal === undefined ? undefined : { refusal, cause: 'bundle' }
    } finally {
      await telling
    }
  }

  #batch(id: Id, report: Report, bad: (item: Id, refusal: Refusal) => void): ItemBatch {
    const { desk, judge, meters, webhooks } = this.parts
    const hearer: BatchHearer = {
      bad,
      sound: (item) => {
        report.items += 1
        if (isBundle(item.header.tags)) report.nested += 1
      },
      told: (added) => meters.of('data_items_indexed_total').add(added),
    }
    return new ItemBatch(id, desk, judge, this.options.index, hearer, webhooks)
  }

  #walk(id: Id, sizeBytes: number, batch: ItemBatch, bad: (item: Id, refusal: Refusal) => void): BundleWalk {
    const { depthMax, entriesMax, unbundle } = this.options
    return new BundleWalk(
      { path: [id], start: 0, sizeBytes },
      {
        depthMax,
        entriesMax,
        opens: (item) => isBundle(item.header.tags) && matches(unbundle, itemSubject(item)),
      },
      { item: (item, message) => batch.add(item, message), bad, broken: bad },
    )
  }
}
