import type { Clock, Timer } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { type Change, LogRingReader } from '../actor/log-ring.js'
import { parsedJson } from '../format/json.js'
import { isDiskError } from '../store/disk-error.js'
import { isDamage } from '../store/lmdb.js'
import type { Column } from './columns.js'
import { type ColumnNames, type HistoryStore, rowSeconds } from './history-store.js'
import { noteStart, noteStop, type ProgramStart } from './starts.js'

/** Lines are few where all is well, and a commit for each interval costs nothing then. */
const linesMs = 2000

export interface RecorderParts {
  readonly store: HistoryStore
  readonly columns: readonly Column[]
  readonly clock: Clock
  readonly log: Pick<Log, 'warn'>
  readonly start: ProgramStart
}

/** Keeps rows of numbers each 10 s, and the lines of the log as they come. What a full disk refuses is lost, and logged. */
export class HistoryRecorder {
  readonly #before: Float64Array
  readonly #names: ColumnNames
  readonly #ring = new LogRingReader()
  readonly #timers: readonly Timer[]
  #isFailing = false

  constructor(private readonly parts: RecorderParts) {
    const { store, columns, clock } = parts
    // Counters begin with the program: the first row has what they counted since.
    this.#before = new Float64Array(columns.length)
    this.#names = columns.map(({ name, kind }) => [name, kind])
    this.#write(() => noteStart(store, parts.start, clock.now()))
    this.#timers = [
      clock.every(rowSeconds * 1000, () => this.addRow()),
      clock.every(linesMs, () => this.addLines()),
    ]
  }

  /** Adds a row of what the columns say now. */
  addRow(): void {
    const { store, columns, clock } = this.parts
    const at = Math.floor(clock.now() / 1000 / rowSeconds) * rowSeconds
    const values = Float64Array.from(columns, ({ kind, read }, index) => {
      const value = read()
      if (kind === 'gauge') return value
      const grown = Math.max(0, value - (this.#before[index] ?? 0))
      this.#before[index] = value
      return grown
    })
    this.#write(() => store.putRow(at, store.setOf(this.#names), values))
  }

  /** Keeps the lines that threads have written since the last call. */
  addLines(): void {
    const { lines: found, lost } = this.#ring.read()
    const { store, clock } = this.parts
    const lines = lost > 0 ? [...found, lostLine(lost, clock.now())] : found
    if (lines.length === 0) return
    this.#write(() => {
      for (const line of lines) keepLine(store, line)
    })
  }

  #write(act: () => void): void {
    const { store, log } = this.parts
    try {
      store.write(act)
      this.#isFailing = false
    } catch (error) {
      if (!isDiskError(error) && !isDamage(error)) throw error
      const say = isDamage(error)
        ? 'the history for the console is damaged: stop the program and remove DATA_PATH/history'
        : 'the disk does not take the history for the console: it has a gap'
      if (!this.#isFailing) log.warn({ err: error }, say)
      this.#isFailing = true
    }
  }

  async close(): Promise<void> {
    const { store, clock } = this.parts
    for (const timer of this.#timers) timer.cancel()
    this.addLines()
    this.addRow()
    this.#write(() => noteStop(store, clock.now()))
    await this.parts.store.close()
  }
}

function lostLine(lost: number, nowMs: number): string {
  const time = new Date(nowMs).toISOString()
  return JSON.stringify({
    level: 40,
    time,
    thread: 'main',
    msg: 'lines that the console does not have',
    lost,
  })
}

interface Line {
  readonly time?: string
  readonly level?: number
  readonly requestId?: string
  readonly change?: Change
}

function keepLine(store: HistoryStore, text: string): void {
  // A thread that stood still while the ring went round may have mixed two lines: such a one is none.
  const { time, level = 30, requestId, change } = (parsedJson(text) ?? {}) as Line
  const ms = Date.parse(time ?? '')
  const kind = change !== undefined ? 'changes' : requestId === undefined ? 'events' : 'requests'
  if (Number.isFinite(ms)) store.putLine(kind, ms, level, text)
}
