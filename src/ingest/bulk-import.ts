import type { Clock } from '../actor/clock.js'
import { type Id, idBytes } from '../format/id.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { tryWrite } from '../store/disk-error.js'
import type { Agenda, Task } from './agenda.js'
import { Ahead } from './ahead.js'
import { failureOf, type OpeningReport, type OpeningRules, openBundle } from './bundle-opening.js'
import type { Intake } from './chain-intake.js'
import { HeldBytes } from './held-items.js'
import type { IndexQueue } from './index-queue.js'
import type { ItemJudge } from './item-judge.js'
import type { NodeFolder } from './node-folder.js'
import { markName, type OpeningMarks } from './opening-marks.js'
import { type BroughtBlock, Supply } from './supply.js'

export interface BulkParts {
  readonly folder: NodeFolder
  readonly queue: IndexQueue
  readonly intake: Intake
  readonly bundles: Agenda
  /** Marks of bundles in the same agenda. */
  readonly marks: OpeningMarks
  readonly judge: ItemJudge
  readonly clock: Clock
}

export interface BulkOptions {
  /** Where an empty index begins; absent: with the lowest block of the folder. */
  readonly startHeight?: number
  /** False: signatures and data roots are not verified; the contents of the folder are trusted. */
  readonly verify: boolean
  readonly rules: OpeningRules
}

/** Progress reports, each as a total. */
export interface BulkProgress {
  blocks(done: number, of: number): void
  transactions(done: number): void
  bundles(done: number, of: number): void
  items(done: number): void
}

export interface BulkOutcome {
  readonly blocks: number
  readonly transactions: number
  /** On the agenda: the gateway requests them from nodes. */
  readonly missing: number
  readonly bundles: number
  readonly items: number
  readonly bad: number
  /** Why it ended before the end of the folder, or what of it was left out. */
  readonly left: readonly string[]
}

const blocksAhead = 100
const headersAtOnce = 64
/** One message to the keeper holds so many blocks or transactions, then it is sent. */
const batchMax = { blocks: 200, transactions: 4000 }
/**
 * Batches (of 1000 items, or of some MiB) that wait for their commit at the same time, and bytes of memory in them. Several,
 * because the keeper commits all that wait in one transaction; fewer than its mailbox takes.
 */
const [batchesAhead, bytesAhead] = [48, 128 * 2 ** 20]
/** Bundles whose last batches wait at the same time: small bundles never fill a batch. */
const bundlesAtOnce = 48
const leftMax = 20
/** A bundle at which so many runs ended is left to the gateway, which waits longer each time. */
const endsMax = 3

/** A bundle of the folder that is on the agenda. */
interface BulkTask {
  readonly id: Id
  readonly task: Task
}

/**
 * Bundles that are marked by one transaction, so that marks cost little. All of them are suspects where the program is killed:
 * the next run opens each alone, at the end.
 */
const markedAtOnce = 256

/**
 * Puts a folder of node JSON into the index, as the follower and the unbundler would from a node: the same checks, the same
 * agendas. A second call goes on where the first was killed.
 */
export class BulkImport {
  #done = { blocks: 0, transactions: 0, missing: 0, bundles: 0, items: 0, bad: 0 }
  readonly #left: string[] = []
  readonly #ahead = new Ahead(batchesAhead, bytesAhead)
  readonly #held: HeldBytes
  /** Bundles that are in the index and still on the agenda. After a kill they are opened again, which changes nothing. */
  readonly #opened: Task[] = []

  constructor(
    private readonly parts: BulkParts,
    private readonly options: BulkOptions,
    private readonly progress: BulkProgress,
  ) {
    this.#held = new HeldBytes(options.rules.heldMaxBytes, bundlesAtOnce)
  }

  /** Rejects where the catalog is lost, or `signal` fires: what was committed stays. */
  async run(signal: AbortSignal): Promise<BulkOutcome | Refusal> {
    const heights = await this.parts.folder.blocks(signal)
    if (isRefusal(heights)) return heights
    const refusal = await this.#blocks(heights, signal)
    if (refusal !== undefined) this.#note(refusal.message)
    // Bundles are opened by what the index has of them.
    await this.parts.queue.keep()
    await this.#bundles(signal)
    await this.parts.queue.keep()
    return { ...this.#done, left: this.#left }
  }

  #note(message: string): void {
    if (this.#left.length < leftMax) this.#left.push(message)
  }

  async #blocks(heights: readonly number[], signal: AbortSignal): Promise<Refusal | undefined> {
    const { folder, queue } = this.parts
    queue.index.refresh()
    const top = queue.index.topHeight()
    const first = top === undefined ? (this.options.startHeight ?? heights[0]) : top + 1
    if (first === undefined) return undefined
    const last = endOfStretch(heights, first)
    const behind = heights.filter((height) => height > Math.max(last, first - 1))
    if (behind.length > 0) {
      this.#note(
        `${behind.length} blocks were left: there is no block ${last + 1} between the index and them`,
      )
    }
    const supply = new Supply(folder, blocksAhead, headersAtOnce, this.options.verify)
    let batch: BroughtBlock[] = []
    let previous = top === undefined ? undefined : queue.index.block(top)?.id
    for (let height = first; height <= last; height += 1) {
      signal.throwIfAborted()
      const brought = await supply.take(height, last)
      const wrong = isRefusal(brought) ? brought : misfit(brought, previous)
      if (isRefusal(brought) || wrong !== undefined) {
        await this.#index(batch, last - first + 1)
        return wrong
      }
      previous = brought.block.hash
      batch.push(brought)
      const transactions = batch.reduce((sum, one) => sum + one.transactions.length, 0)
      if (batch.length < batchMax.blocks && transactions < batchMax.transactions) continue
      await this.#index(batch, last - first + 1)
      batch = []
    }
    await this.#index(batch, last - first + 1)
    return undefined
  }

  async #index(batch: readonly BroughtBlock[], of: number): Promise<void> {
    const { intake, queue, clock } = this.parts
    if (batch.length === 0) return
    const refused = intake.remember(batch, clock.now())
    if (refused > 0) this.#note(`${refused} bundles or missing transactions found no room on the agenda`)
    await queue.write(() => intake.blockWords(batch))
    this.#done.blocks += batch.length
    for (const { transactions, missing } of batch) {
      this.#done.transactions += transactions.length
      this.#done.missing += missing.length
    }
    this.progress.blocks(this.#done.blocks, of)
    this.progress.transactions(this.#done.transactions)
  }

  /**
   * Bundles that are on the agenda and whose data is in the folder: read one by one in chain order, indexed several at once.
   * Those at which an earlier run ended come after all others, each alone (`OpeningMarks`).
   */
  async #bundles(signal: AbortSignal): Promise<void> {
    const { marks, clock } = this.parts
    const tasks = this.#tasks()
    if (tasks.length > 0) this.progress.bundles(0, tasks.length)
    marks.load(clock.now())
    const endsAt = ({ task }: BulkTask): number => marks.endsAt(markName(task.key))
    const suspects = tasks.filter((one) => endsAt(one) > 0).sort((one, other) => endsAt(one) - endsAt(other))
    const usual = tasks.filter((one) => endsAt(one) === 0)
    for (let from = 0; from < usual.length; from += markedAtOnce)
      await this.#marked(usual.slice(from, from + markedAtOnce), tasks.length, signal)
    for (const suspect of suspects) {
      if (endsAt(suspect) < endsMax) await this.#marked([suspect], tasks.length, signal)
      else this.#note(`${suspect.id}: ${endsAt(suspect)} runs ended at this bundle: the gateway opens it`)
    }
  }

  /** Opens bundles between two marks. The first one stays where the program ends in between. */
  async #marked(tasks: readonly BulkTask[], of: number, signal: AbortSignal): Promise<void> {
    const { marks } = this.parts
    const keys = tasks.map(({ task }) => task.key)
    marks.begun(...keys)
    let isOver = false
    try {
      await this.#openAll(tasks, of, signal)
      isOver = true
    } finally {
      tryWrite(() => marks.endedAll(keys, isOver))
    }
  }

  async #openAll(tasks: readonly BulkTask[], of: number, signal: AbortSignal): Promise<void> {
    const bundlesAhead = new Ahead(bundlesAtOnce)
    const ended: Promise<void>[] = []
    for (const { id, task } of tasks) {
      signal.throwIfAborted()
      await new Promise<void>((read, failed) => {
        const opening = this.#bundle(id, task, read, signal).then(() => {
          this.#done.bundles += 1
          this.progress.bundles(this.#done.bundles, of)
          read()
        })
        opening.catch(failed)
        bundlesAhead.add(opening)
        ended.push(opening)
      })
      await bundlesAhead.room()
    }
    await Promise.all(ended)
    this.#leave()
  }

  /** Bundles that were opened leave the agenda when their items are in the index. */
  #leave(): void {
    const { queue, bundles } = this.parts
    const opened = this.#opened.splice(0)
    queue.whenKept(() => bundles.done(...opened))
  }

  /**
   * Sorted in chain order, because rows are then appended everywhere in the index, which is far cheaper than
   * inserting them.
   */
  #tasks(): BulkTask[] {
    const { folder, bundles, queue } = this.parts
    queue.index.refresh()
    const tasks = folder.dataIds().flatMap((id) => {
      const task = bundles.find(idBytes(id))
      const key = queue.index.row(idBytes(id), false)?.key ?? idBytes(id)
      return task === undefined ? [] : [{ id, task, key }]
    })
    return tasks.sort((one, other) => Buffer.compare(one.key, other.key))
  }

  async #bundle(id: Id, task: Task, read: () => void, signal: AbortSignal): Promise<void> {
    const { folder, queue, judge } = this.parts
    const { verify, rules } = this.options
    const report: OpeningReport = { items: 0, bad: 0, nested: 0 }
    const open = (): ReturnType<NodeFolder['openData']> =>
      folder.openData(id, verify ? this.#root(id) : undefined, signal)
    const onAdded = (added: number): void => {
      this.#done.items += added
      this.progress.items(this.#done.items)
    }
    const [ahead, held] = [this.#ahead, this.#held]
    const parts = { queue, open, onAdded, read, ahead, held, judge: verify ? judge : undefined }
    const failure = failureOf(await openBundle(parts, rules, id, report, signal))
    this.#done.bad += report.bad
    if (report.firstBad !== undefined)
      this.#note(`in ${id} ${report.bad} items are bad, the first ${report.firstBad}`)
    if (failure !== undefined) this.#note(`${id}: ${failure.refusal.message}`)
    // Bundles whose bytes in the folder are missing or wrong stay on the agenda: a node may have them.
    if (failure === undefined || failure.cause === 'bundle') this.#opened.push(task)
    if (this.#opened.length >= bundlesAtOnce) this.#leave()
  }

  #root(id: Id): Uint8Array {
    return this.parts.queue.index.row(idBytes(id), false)?.transfer?.dataRoot ?? new Uint8Array(0)
  }
}

/** The last of the heights that follow each other from `first` on; `first - 1` where `first` is not there. */
function endOfStretch(heights: readonly number[], first: number): number {
  const known = new Set(heights)
  let last = first - 1
  while (known.has(last + 1)) last += 1
  return last
}

function misfit({ block }: BroughtBlock, previous: string | undefined): Refusal | undefined {
  if (previous === undefined || block.previous === previous) return undefined
  return refuse('malformed', 'upstream', `block ${block.height} is on another branch than the index`)
}
