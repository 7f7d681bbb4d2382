import { type Clock, pause, type Timer } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Meters } from '../actor/meter.js'
import type { Outage } from '../actor/outage.js'
import type { Following } from '../actor/shared.js'
import { idOfBytes } from '../format/id.js'
import { isRefusal } from '../format/refusal.js'
import { diskOutage, isDiskError, tryWrite } from '../store/disk-error.js'
import { countDiskError } from '../store/disk-errors.js'
import { writePatiently } from '../store/patient-write.js'
import { type Agenda, pauseMs, type Task } from './agenda.js'
import type { BundleLook, bundleBytes } from './bundle-bytes.js'
import {
  failureOf,
  type OpeningFailure,
  type OpeningParts,
  type OpeningPause,
  type OpeningReport,
  type OpeningRules,
  openBundle,
} from './bundle-opening.js'
import { bringsFirst } from './bundle-probe.js'
import { type BundleTask, encodeBundleTask, readBundleTask } from './bundle-tasks.js'
import { BundleTurns, type OpenBundle, type TurnOptions } from './bundle-turns.js'
import { HeldBytes } from './held-items.js'
import { markName, type OpeningMarks } from './opening-marks.js'

export interface UnbundlerOptions extends OpeningRules, TurnOptions {
  /** Pause after the first failure; doubles up to `retryMaxMs`. */
  readonly retryMs: number
  readonly retryMaxMs: number
  /** Attempts for a root that is in no indexed block: its branch may be gone. */
  readonly orphanLooks: number
}

export interface UnbundlerParts extends Omit<OpeningParts, 'onAdded' | 'open' | 'turn'> {
  /** Same as `bundleBytes` makes it. */
  readonly open: ReturnType<typeof bundleBytes>
  /** Same as `bundleAgenda` makes it. */
  readonly agenda: Agenda
  readonly marks: OpeningMarks
  readonly following: Following
  readonly meters: Meters
  readonly clock: Clock
  readonly log: Log
}

/** After an error of the disk a bundle is opened again after so long. */
const diskMs = 5000

interface Running extends OpenBundle {
  readonly work: Promise<void>
}

/**
 * Opens bundles of indexed transactions, a few at once, each as a stream, and sends every item in them to the catalog.
 *
 * Transactions may say that they are bundles and have no data. So what failed never has more than half of the places, the owners
 * of transactions have turns, and the last place is for an owner that has none. A bundle of many items gives its place up after
 * some seconds where others wait, and goes on later; one place more is for small bundles (`BundleTurns`). Bundles at which an
 * earlier run of the program ended (`OpeningMarks`) are opened after all others, one at a time; those at which several ended
 * beside none that began lately.
 */
export class Unbundler {
  readonly #abort = new AbortController()
  readonly #running = new Map<string, Running>()
  #timer: Timer | undefined
  #hasMarks = false
  #lost: (error: unknown) => void = () => undefined
  readonly #disk: Outage
  readonly #held: HeldBytes
  readonly #turns: BundleTurns

  constructor(
    private readonly parts: UnbundlerParts,
    private readonly options: UnbundlerOptions,
  ) {
    this.#disk = diskOutage(parts.log, 'bundles')
    this.#held = new HeldBytes(options.heldMaxBytes, options.atOnce)
    this.#turns = new BundleTurns(parts.agenda, parts.marks, parts.clock, options)
  }

  /**
   * Starts, with the tasks that an earlier process left. Never resolves; rejects where the catalog is lost, and then
   * the thread must end.
   */
  run(): Promise<never> {
    return new Promise((_, reject) => {
      this.#lost = reject
      this.#begin().catch(reject)
    })
  }

  /** Nothing is opened before it is known at which bundles the last run ended. */
  async #begin(): Promise<void> {
    const { marks, clock } = this.parts
    this.#hasMarks = await this.#written(() => marks.load(clock.now()))
    this.wake()
  }

  async stop(): Promise<void> {
    this.#abort.abort()
    this.#timer?.cancel()
    await Promise.all([...this.#running.values()].map(({ work }) => work))
  }

  /** Looks at the agenda: something may be due. */
  wake(): void {
    if (this.#abort.signal.aborted || !this.#hasMarks) return
    const { agenda, clock, following } = this.parts
    this.#timer?.cancel()
    // What is in line already goes on while the disk takes nothing.
    const refused = tryWrite(() => agenda.line(clock.now()))
    for (let task = this.#next(); task !== undefined; task = this.#next()) this.#start(task)
    following.bundlesWaiting = agenda.count
    const open = [...this.#running.values()]
    if (this.#turns.isFull(open)) return
    const leastMs = isRefusal(refused) ? diskMs : 100
    const waitMs = Math.min(
      (agenda.nextMs ?? Number.POSITIVE_INFINITY) - clock.now(),
      this.#turns.shortMs(open),
    )
    if (waitMs === Number.POSITIVE_INFINITY) return
    this.#timer = clock.after(Math.min(Math.max(waitMs, leastMs), 60_000), () => this.wake())
  }

  #next(): Task | undefined {
    return this.#turns.next([...this.#running.values()], (key) => this.#running.has(key))
  }

  #start(task: Task): void {
    const name = markName(task.key)
    const open = this.#turns.opened(task, [...this.#running.values()])
    const work = this.#marked(task, open)
      .then(() => this.#disk.well())
      .catch((error: unknown) => {
        if (this.#abort.signal.aborted) return undefined
        if (!isDiskError(error)) return this.#lost(error)
        countDiskError(error)
        this.#disk.failed({ err: error })
        // It keeps its place meanwhile, so that no more is begun than the disk takes.
        return pause(diskMs, this.#abort.signal)
      })
      .finally(() => {
        this.#running.delete(name)
        this.#turns.closed(open)
        this.wake()
      })
    this.#running.set(name, { ...open, work })
  }

  /** Waits for the disk: opened again, a bundle is read again. False: the thread stops. */
  #written(write: () => void): Promise<boolean> {
    return writePatiently(write, this.#abort.signal, this.parts.log)
  }

  /** Opens a bundle between two marks. The first one stays where the program ends in between, or this thread does by an error. */
  async #marked(task: Task, open: OpenBundle): Promise<void> {
    const { marks } = this.parts
    if (!(await this.#written(() => marks.begun(task.key)))) return
    let isOver = false
    try {
      isOver = await this.#work(task, open)
    } catch (error) {
      if (this.#abort.signal.aborted || isDiskError(error)) tryWrite(() => marks.ended(task.key, false))
      throw error
    }
    if (this.#abort.signal.aborted) tryWrite(() => marks.ended(task.key, isOver))
    else await this.#written(() => marks.ended(task.key, isOver))
  }

  /** Resolves with true where it need not be opened again. */
  async #work(task: Task, place: OpenBundle): Promise<boolean> {
    const id = idOfBytes(task.key)
    const { clock, log, meters, following } = this.parts
    const report: OpeningReport = { items: 0, bad: 0, nested: 0 }
    const onAdded = (added: number): void => {
      meters.of('data_items_indexed_total').add(added)
      if (added === 0) return
      following.itemIndexedMs = clock.now()
      meters.of('data_item_last_indexed_timestamp_seconds').set(Math.floor(clock.now() / 1000))
    }
    const { signal } = this.#abort
    const known = readBundleTask(task.value)
    let { missing } = known
    const look: BundleLook = {
      missing,
      bringsFirst: bringsFirst(task.attempts),
      broke: (at) => {
        missing = at
      },
    }
    const open: OpeningParts['open'] = (_, aborted, parts) => this.parts.open(id, { ...look, parts }, aborted)
    let readMs: number | undefined
    const isOver = (isOnward: boolean): boolean => {
      readMs ??= clock.monotonic()
      return this.#turns.isOver(place, this.#running.size, isOnward ? readMs : undefined)
    }
    const turn = { from: known.place, isOver }
    const parts = { ...this.parts, onAdded, open, held: this.#held, turn }
    const end = await openBundle(parts, this.options, id, report, signal)
    if (signal.aborted) return false
    meters.of('data_items_bad_total').add(report.bad)
    const failure = failureOf(end)
    if (failure !== undefined) return this.#failed(task, failure, { ...known, missing }, report)
    if (end !== undefined && 'place' in end) return this.#paused(task, end, known)
    if (!(await this.#written(() => this.parts.agenda.done(task)))) return false
    meters.of('bundles_unbundled_total').add(1)
    log[report.bad > 0 ? 'warn' : 'debug']({ id, ...report }, 'unbundled')
    return true
  }

  /** Its turn is over. One that read no item to its end is marked: it may take long again. */
  async #paused(task: Task, { place }: OpeningPause, known: BundleTask): Promise<boolean> {
    const { agenda, log } = this.parts
    const value = encodeBundleTask({ ...known, place, missing: undefined, isStuck: place === known.place })
    if (await this.#written(() => agenda.back(task, value)))
      log.debug({ id: idOfBytes(task.key), ...place }, 'a bundle goes on later')
    return false
  }

  /** Resolves with true where it is given up. */
  async #failed(
    task: Task,
    failure: OpeningFailure,
    known: BundleTask,
    report: OpeningReport,
  ): Promise<boolean> {
    const id = idOfBytes(task.key)
    const { agenda, clock, log, meters } = this.parts
    const reason = failure.refusal.message
    const orphan = failure.cause === 'orphan' && task.attempts + 1 >= this.options.orphanLooks
    if (orphan || failure.cause === 'bundle') {
      if (!(await this.#written(() => agenda.done(task)))) return false
      meters.of('bundles_failed_total').add(1)
      log.warn({ id, reason, ...report }, 'a bundle could not be unpacked, and is not tried again')
      return true
    }
    const { retryMs, retryMaxMs } = this.options
    const delayMs = pauseMs(task.attempts, retryMs, retryMaxMs)
    const value = encodeBundleTask(known)
    if (!(await this.#written(() => agenda.later(task, clock.now() + delayMs, value)))) return false
    meters.of('bundles_retried_total').add(1)
    log.debug({ id, reason, delayMs }, 'a bundle is tried again later')
    return false
  }
}
