import { randomBytes } from 'node:crypto'
import { type Environment, type KeyRange, present, type Table } from '../store/lmdb.js'

/** Work that must survive a restart. */
export interface Task {
  /** At most 64 bytes. */
  readonly key: Uint8Array
  readonly value: Uint8Array
  /** How often it failed. */
  readonly attempts: number
  readonly dueMs: number
  /** The record as it was read: a task with the same key that was put again meanwhile has another record. */
  readonly record: Uint8Array
}

const headBytes = 8 + 4 + 8

/** No task is scheduled further ahead. One that seems to be was written before the clock was set back, so it is due now. */
const aheadMaxMs = 2 * 86_400_000

/** Bytes that stand for a party. */
export const partyBytes = 8

/** Lines of tasks that are due: small ones, those that were stuck, and others, which never failed; and those that failed. */
export type TaskLine = 'small' | 'stuck' | 'first' | 'again'
const lineBytes: Readonly<Record<TaskLine, number>> = { small: 2, stuck: 3, first: 0, again: 1 }

/** How tasks stand in lines, by what is in their values. */
export interface TaskLines {
  /** The party of a task: `partyBytes`, or fewer. */
  readonly partyOf: (value: Uint8Array) => Uint8Array
  /** The line of a task that never failed; absent: `first`. */
  readonly lineOf?: (value: Uint8Array) => Exclude<TaskLine, 'again'>
}

/** Tasks that get into line in one commit. */
const readyMax = 1000

/**
 * Tasks on disk in the order in which they are due. One thread writes. Record: `due f64, attempts u32, a random stamp (8 bytes),
 * value`.
 *
 * Where tasks are of many parties, those that are due stand in lines, and in each of them parties have turns. So tasks that
 * fail again and again never stand before a new one, and the many of one party never before the few of another.
 */
export class Agenda {
  readonly #tasks: Table
  readonly #due: Table
  /** Tasks in line (line u8, party, due f64, key); they are not in `#due` then. */
  readonly #ready: Table | undefined
  /** Where the next turn begins. */
  readonly #turn: Record<TaskLine, Uint8Array> = {
    small: Buffer.alloc(0),
    stuck: Buffer.alloc(0),
    first: Buffer.alloc(0),
    again: Buffer.alloc(0),
  }

  /** `name` distinguishes agendas in one environment; `tasksMax` bounds the disk. Without `lines` there are no lines. */
  constructor(
    private readonly environment: Environment,
    name: string,
    private readonly tasksMax: number,
    private readonly lines?: TaskLines,
  ) {
    this.#tasks = environment.table(name)
    this.#due = environment.table(`${name} due`)
    this.#ready = lines && environment.table(`${name} ready`)
  }

  get count(): number {
    return this.#tasks.count()
  }

  /** Tasks in lines, with those that are being worked on. */
  get lined(): number {
    return this.#ready?.count() ?? 0
  }

  /** When the first task is due that is in no line; undefined where there is none. */
  get nextMs(): number | undefined {
    const first = this.#due.ceiling(Buffer.alloc(1))
    return first === undefined ? undefined : Buffer.from(first.key).readDoubleBE(0)
  }

  /** The task with this key. */
  find(key: Uint8Array): Task | undefined {
    const bytes = this.#tasks.get(key)
    return bytes === undefined ? undefined : taskOf(key, bytes)
  }

  /**
   * Puts tasks on the agenda, on disk when this returns; one that is there already is scheduled anew. Returns how
   * many were refused because the agenda is full.
   */
  put(tasks: readonly { readonly key: Uint8Array; readonly value: Uint8Array }[], dueMs: number): number {
    if (tasks.length === 0) return 0
    let refused = 0
    this.environment.write(() => {
      for (const { key, value } of tasks) {
        const known = this.#tasks.get(key)
        if (known === undefined && this.#tasks.count() >= this.tasksMax) refused += 1
        else this.#set(key, known, record(dueMs, 0, value))
      }
    })
    return refused
  }

  /** Tasks that are due, the first first, at most `limit`. */
  due(nowMs: number, limit: number): Task[] {
    const none = new Uint8Array(0)
    const found = this.#within({ end: dueKey(nowMs + 1, none) }, limit)
    if (found.length === limit) return found
    const stray = this.#within({ start: dueKey(nowMs + aheadMaxMs, none) }, limit - found.length)
    return [...found, ...stray]
  }

  /** Puts tasks that are due into their lines, a bounded number at once. Writes only where there are any. */
  line(nowMs: number): void {
    const ready = this.#ready
    if (ready === undefined) return
    const none = new Uint8Array(0)
    const late = this.#due.keys({ end: dueKey(nowMs + 1, none), limit: readyMax })
    const stray = this.#due.keys({ start: dueKey(nowMs + aheadMaxMs, none), limit: readyMax })
    const entries = [...late, ...stray]
    if (entries.length === 0) return
    this.environment.write(() => {
      for (const entry of entries) {
        ready.put(this.#readyKey(this.#taskAt(entry)), present)
        this.#due.remove(entry)
      }
    })
  }

  /**
   * The next task in a line: of the party whose turn it is, the one that was due first. None that `taken` names (keys as
   * hexadecimal text) and none of the parties in `without` (`partyName`).
   */
  next(
    line: TaskLine,
    taken: { has(key: string): boolean },
    without: ReadonlySet<string> = new Set(),
  ): Task | undefined {
    const [begin, end] = [Buffer.of(lineBytes[line]), Buffer.of(lineBytes[line] + 1)]
    const turn = Buffer.concat([begin, this.#turn[line]])
    return (
      this.#nextIn(line, { start: turn, end }, taken, without) ??
      this.#nextIn(line, { start: begin, end: turn }, taken, without)
    )
  }

  #nextIn(
    line: TaskLine,
    { start, end }: { start: Uint8Array; end: Uint8Array },
    taken: { has(key: string): boolean },
    without: ReadonlySet<string>,
  ): Task | undefined {
    for (let from = start; ; ) {
      const [first] = [...(this.#ready?.keys({ start: from, end, limit: 1 }) ?? [])]
      if (first === undefined) return undefined
      const party = Buffer.from(first.subarray(1, 1 + partyBytes))
      // No time begins with this byte.
      const behind = Buffer.concat([first.subarray(0, 1), party, Buffer.of(0xff)])
      const task = without.has(party.toString('hex')) ? undefined : this.#firstOf(first, behind, taken)
      if (task !== undefined) {
        this.#turn[line] = behind.subarray(1)
        return task
      }
      from = behind
    }
  }

  #firstOf(start: Uint8Array, end: Uint8Array, taken: { has(key: string): boolean }): Task | undefined {
    for (const entry of this.#ready?.keys({ start, end }) ?? []) {
      const key = Buffer.from(entry.subarray(1 + partyBytes + 8))
      if (!taken.has(key.toString('hex'))) return this.find(key)
    }
    return undefined
  }

  /** The party of a task. */
  partyName({ value }: Pick<Task, 'value'>): string {
    return Buffer.from(this.#party(value)).toString('hex')
  }

  #party(value: Uint8Array): Uint8Array {
    const party = Buffer.alloc(partyBytes)
    party.set(this.lines?.partyOf(value) ?? [])
    return party
  }

  /** The line that a task stands in when it is due. */
  lineOf({ attempts, value }: Pick<Task, 'attempts' | 'value'>): TaskLine {
    return attempts > 0 ? 'again' : (this.lines?.lineOf?.(value) ?? 'first')
  }

  #readyKey(task: Task): Buffer {
    const { key, value, dueMs } = task
    return Buffer.concat([Buffer.of(lineBytes[this.lineOf(task)]), this.#party(value), dueKey(dueMs, key)])
  }

  #within(span: KeyRange, limit: number): Task[] {
    return [...this.#due.span({ ...span, limit })].map(({ key }) => this.#taskAt(key))
  }

  /** The task of an entry of `#due`. */
  #taskAt(entry: Uint8Array): Task {
    const task = this.find(Buffer.from(entry.subarray(8)))
    if (task === undefined) throw new Error('an entry of the agenda has no task')
    return task
  }

  /** Removes finished tasks, except those that were put again meanwhile. */
  done(...tasks: readonly Task[]): void {
    if (tasks.length === 0) return
    this.environment.write(() => {
      for (const task of tasks) if (this.#isCurrent(task)) this.#set(task.key, task.record, undefined)
    })
  }

  /** Schedules a failed task again at `dueMs`, with what is known of it now, unless it was put again meanwhile. */
  later(task: Task, dueMs: number, value: Uint8Array = task.value): void {
    this.environment.write(() => {
      if (!this.#isCurrent(task)) return
      this.#set(task.key, task.record, record(dueMs, task.attempts + 1, value))
    })
  }

  /** Puts a task back in its line, with what is known of it now, unless it was put again meanwhile. It did not fail. */
  back(task: Task, value: Uint8Array): void {
    this.environment.write(() => {
      if (!this.#isCurrent(task)) return
      this.#set(task.key, task.record, record(task.dueMs, task.attempts, value))
    })
  }

  #isCurrent(task: Task): boolean {
    const now = this.#tasks.get(task.key)
    return now !== undefined && Buffer.compare(now, task.record) === 0
  }

  #set(key: Uint8Array, before: Uint8Array | undefined, after: Uint8Array | undefined): void {
    if (before !== undefined) {
      const task = taskOf(key, before)
      this.#due.remove(dueKey(task.dueMs, key))
      this.#ready?.remove(this.#readyKey(task))
    }
    if (after === undefined) {
      this.#tasks.remove(key)
      return
    }
    this.#tasks.put(key, after)
    this.#due.put(dueKey(taskOf(key, after).dueMs, key), new Uint8Array(0))
  }
}

/** Positive doubles sort like their bytes. */
function dueKey(dueMs: number, key: Uint8Array): Buffer {
  const bytes = Buffer.alloc(8 + key.length)
  bytes.writeDoubleBE(dueMs, 0)
  bytes.set(key, 8)
  return bytes
}

function record(dueMs: number, attempts: number, value: Uint8Array): Uint8Array {
  const bytes = Buffer.alloc(headBytes + value.length)
  bytes.writeDoubleBE(dueMs, 0)
  bytes.writeUInt32BE(attempts, 8)
  bytes.set(randomBytes(8), 12)
  bytes.set(value, headBytes)
  return bytes
}

function taskOf(key: Uint8Array, bytes: Uint8Array): Task {
  const head = Buffer.from(bytes)
  return {
    key,
    value: head.subarray(headBytes),
    dueMs: head.readDoubleBE(0),
    attempts: head.readUInt32BE(8),
    record: bytes,
  }
}

/** When a task that failed so often is tried again: `firstMs`, then twice as long each time, at most `maxMs`. */
export function pauseMs(attempts: number, firstMs: number, maxMs: number): number {
  return Math.min(firstMs * 2 ** Math.min(attempts, 40), maxMs)
}
