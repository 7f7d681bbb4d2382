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
import { type OpeningParts, type OpeningReport, type OpeningRules, openBundle } from './bundle-opening.js'
import { bringsFirst } from './bundle-probe.js'
import { encodeBundleTask, readBundleTask } from './bundle-tasks.js'
import { HeldBytes } from './held-items.js'
import type { OpeningMarks } from './opening-marks.js'

export interface UnbundlerOptions extends OpeningRules {
  /** Bundles read at once. */
  readonly atOnce: number
  /** Pause after the first failure; doubles up to `retryMaxMs`. */
  readonly retryMs: number
  readonly retryMaxMs: number
  /** Attempts for a root that is in no indexed block: its branch may be gone. */
  readonly orphanLooks: number
}

export interface UnbundlerParts extends Omit<OpeningParts, 'onAdded' | 'open'> {
  /** As `bundleBytes` makes it. */
  readonly open: ReturnType<typeof bundleBytes>
  /** As `bundleAgenda` makes it. */
  readonly agenda: Agenda
  readonly marks: OpeningMarks
  readonly following: Following
  readonly meters: Meters
  readonly clock: Clock
  readonly log: Log
}

/** After an error of the disk a bundle is opened again after so long. */
const diskMs = 5000

/** A suspect waits for all others, but no longer than this: then no other is begun before it. */
const suspectWaitMs = 600_000
/** One at which two runs ended, or more, is opened alone for so long; what is only long is read on beside others. */
const aloneMs = 60_000

/** A bundle that is being opened. */
interface Running {
  readonly work: Promise<void>
  readonly party: string
  readonly isAgain: boolean
  readonly isSuspect: boolean
  readonly begunMs: number
  /** None is begun beside it until then. */
  readonly aloneUntilMs: number
}

/**
 * Opens bundles of indexed transactions, a few at once, each as a stream, and sends every item in them to the catalog.
 *
 * Transactions may say that they are bundles and have no data. So what failed never has more than half of the places, the owners
 * of transactions have turns, and the last place is for an owner that has none. Bundles at which an earlier run of the program
 * ended (`OpeningMarks`) are opened after all others, one at a time; those at which several ended beside none that began lately.
 */
export class Unbundler {
  readonly #abort = new AbortController()
  readonly #running = new Map<string, Running>()
  #timer: Timer | undefined
  #hasMarks = false
  #lost: (error: unknown) => void = () => undefined
  readonly #disk: Outage
  readonly #held: HeldBytes

  constructor(
    private readonly parts: UnbundlerParts,
    private readonly options: UnbundlerOptions,
  ) {
    this.#disk = diskOutage(parts.log, 'bundles')
    this.#held = new HeldBytes(options.heldMaxBytes, options.atOnce)
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
    if (this.#running.size >= this.options.atOnce) return
    const leastMs = isRefusal(refused) ? diskMs : 100
    const waitMs = Math.min((agenda.nextMs ?? Number.POSITIVE_INFINITY) - clock.now(), this.#runningShortMs())
    if (waitMs === Number.POSITIVE_INFINITY) return
    this.#timer = clock.after(Math.min(Math.max(waitMs, leastMs), 60_000), () => this.wake())
  }

  /** How long it takes until the next of those that run is a long one, which may let others begin; infinite where all are. */
  #runningShortMs(): number {
    const nowMs = this.parts.clock.monotonic()
    const leftMs = [...this.#running.values()].map(({ begunMs }) => begunMs + aloneMs - nowMs)
    return Math.min(...leftMs.filter((ms) => ms > 0))
  }

  #next(): Task | undefined {
    const { atOnce } = this.options
    const { marks, clock } = this.parts
    const running = [...this.#running.values()]
    const monotonicMs = clock.monotonic()
    const isHeld = running.some(({ aloneUntilMs }) => aloneUntilMs > monotonicMs)
    if (running.length >= atOnce || isHeld) return undefined
    const nowMs = clock.now()
    const isOpen = running.some(({ isSuspect }) => isSuspect)
    const suspect = isOpen ? undefined : marks.next(nowMs)
    const isLate = suspect !== undefined && nowMs - suspect.dueMs > suspectWaitMs
    const other = isLate ? undefined : this.#nextOther(running)
    if (other !== undefined || suspect === undefined) return other
    // One end may have been the fault of another bundle beside it, or of none. Beside what is only long any may be begun.
    const areLong = running.every(({ begunMs }) => monotonicMs - begunMs >= aloneMs)
    return areLong || marks.endsAt(keyName(suspect)) === 1 ? suspect : undefined
  }

  /** The next one that is no suspect. */
  #nextOther(running: readonly Running[]): Task | undefined {
    const { atOnce } = this.options
    const { agenda, marks } = this.parts
    const taken = { has: (key: string): boolean => this.#running.has(key) || marks.isSuspect(key) }
    const isLast = atOnce > 2 && running.length === atOnce - 1
    const without = new Set(isLast ? running.map(({ party }) => party) : [])
    const first = agenda.next('first', taken, without)
    if (first !== undefined) return first
    const again = running.filter(({ isAgain }) => isAgain).length
    return again < Math.ceil(atOnce / 2) ? agenda.next('again', taken, without) : undefined
  }

  #start(task: Task): void {
    const name = keyName(task)
    const work = this.#marked(task)
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
        this.wake()
      })
    const { agenda, marks, clock } = this.parts
    const party = agenda.partyName(task)
    const ends = marks.endsAt(name)
    const begunMs = clock.monotonic()
    const aloneUntilMs = ends > 1 ? begunMs + aloneMs : 0
    const [isAgain, isSuspect] = [task.attempts > 0, ends > 0]
    this.#running.set(name, { work, party, isAgain, isSuspect, begunMs, aloneUntilMs })
  }

  /** Waits for the disk: opened again, a bundle is read again. False: the thread stops. */
  #written(write: () => void): Promise<boolean> {
    return writePatiently(write, this.#abort.signal, this.parts.log)
  }

  /** Opens a bundle between two marks. The first one stays where the program ends in between, or this thread does by an error. */
  async #marked(task: Task): Promise<void> {
    const { marks } = this.parts
    if (!(await this.#written(() => marks.begun(task.key)))) return
    let isOver = false
    try {
      isOver = await this.#work(task)
    } catch (error) {
      if (this.#abort.signal.aborted || isDiskError(error)) tryWrite(() => marks.ended(task.key, false))
      throw error
    }
    if (this.#abort.signal.aborted) tryWrite(() => marks.ended(task.key, isOver))
    else await this.#written(() => marks.ended(task.key, isOver))
  }

  /** Resolves with true where it need not be opened again. */
  async #work(task: Task): Promise<boolean> {
    const id = idOfBytes(task.key)
    const { agenda, clock, log, meters, following } = this.parts
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
    const open = () => this.parts.open(id, look, signal)
    const parts = { ...this.parts, onAdded, open, held: this.#held }
    const failure = await openBundle(parts, this.options, id, report, signal)
    if (this.#abort.signal.aborted) return false
    meters.of('data_items_bad_total').add(report.bad)
    if (failure === undefined) {
      if (!(await this.#written(() => agenda.done(task)))) return false
      meters.of('bundles_unbundled_total').add(1)
      log[report.bad > 0 ? 'warn' : 'debug']({ id, ...report }, 'unbundled')
      return true
    }
    const reason = failure.refusal.message
    const orphan = failure.cause === 'orphan' && task.attempts + 1 >= this.options.orphanLooks
    if (orphan || failure.cause === 'bundle') {
      if (!(await this.#written(() => agenda.done(task)))) return false
      meters.of('bundles_failed_total').add(1)
      log.warn({ id, reason, ...report }, 'a bundle could not be unpacked, and is not tried again')
      return true
    }
    const { retryMs, retryMaxMs } = this.options
    const value = encodeBundleTask(missing === undefined ? known : { ...known, missing })
    const delayMs = pauseMs(task.attempts, retryMs, retryMaxMs)
    if (!(await this.#written(() => agenda.later(task, clock.now() + delayMs, value)))) return false
    meters.of('bundles_retried_total').add(1)
    log.debug({ id, reason, delayMs }, 'a bundle is tried again later')
    return false
  }
}

function keyName({ key }: Task): string {
  return Buffer.from(key).toString('hex')
}
