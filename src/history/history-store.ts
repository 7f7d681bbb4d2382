import { rmSync } from 'node:fs'
import { parsedJson } from '../format/json.js'
import { type Environment, openEnvironment, type Table, type TableEntry } from '../store/lmdb.js'
import { BrokenDatabase } from '../store/lmdb-check.js'
import type { Column } from './columns.js'

/** Interval of the rows, seconds. Rows older than `fineSeconds` are added up to one a minute, and removed after a day. */
export const rowSeconds = 10
export const fineSeconds = 7200
export const minuteSeconds = 60
export const keptSeconds = 86_400

/** Lines of each kind, and changes, at most: the oldest go first. */
const linesMax = 10_000
const changesMax = 2000
/** Sets of columns that rows may refer to: each version of the program may have its own. */
const setsMax = 32

export type ColumnNames = readonly (readonly [name: string, kind: Column['kind']])[]

/** A row: its values in the order of its columns. */
export interface HistoryRow {
  /** Start of its stretch of time, seconds since 1970. */
  readonly at: number
  /** Seconds that it stands for. */
  readonly seconds: number
  readonly columns: ColumnNames
  readonly values: Float64Array
}

/** Where a line lies: milliseconds since 1970 and a number among those of the same millisecond. */
export interface LineEntry {
  readonly key: Uint8Array
  readonly level: number
  /** JSON. */
  readonly text: string
}

/** Lines about requests are apart from others, so that a flood of bad requests does not crowd those out. */
export type LineKind = 'requests' | 'events' | 'changes'
const lineKinds: readonly LineKind[] = ['requests', 'events', 'changes']

/** Rows that one transaction thins out. */
const thinnedAtOnce = 200

const headBytes = 8

/**
 * What happened in the last 24 hours, in an LMDB environment of its own. Tables: `rows` and `minutes` (time u32 seconds ->
 * number of the set of columns u32, seconds that the row stands for u32, values f64), `columns` (number u32 -> JSON), `requests`,
 * `events` and `changes` (time u48 milliseconds and number u16 -> level u8, JSON), `state`. One thread writes; others read.
 */
export class HistoryStore {
  readonly #environment: Environment
  readonly #rows: Table
  readonly #minutes: Table
  readonly #columns: Table
  readonly #lines: Readonly<Record<LineKind, Table>>
  readonly #state: Table
  readonly #sets = new Map<number, ColumnNames>()

  /** `path` is the folder, made where it is missing. */
  constructor(path: string, open = openEnvironment) {
    this.#environment = open(path, 8)
    const table = (name: string): Table => this.#environment.table(name)
    this.#rows = table('rows')
    this.#minutes = table('minutes')
    this.#columns = table('columns')
    this.#lines = { requests: table('requests'), events: table('events'), changes: table('changes') }
    this.#state = table('state')
  }

  /** The number under which these columns stand. Only inside `write`. */
  setOf(columns: ColumnNames): number {
    const text = Buffer.from(JSON.stringify(columns))
    let last = 0
    for (const { key, value } of this.#columns.span({})) {
      last = readNumber(key)
      if (text.equals(value)) return last
    }
    this.#columns.put(numberKey(last + 1), text)
    if (last + 1 > setsMax) this.#columns.remove(numberKey(last + 1 - setsMax))
    return last + 1
  }

  /** Adds the row of the stretch that begins at `at`, and thins out what is older. Only inside `write`. */
  putRow(at: number, set: number, values: Float64Array): void {
    this.#rows.put(numberKey(at), encodeRow(set, rowSeconds, values))
    this.#thin(at)
  }

  #thin(now: number): void {
    for (const { key, value } of this.#over(this.#rows, now - fineSeconds)) {
      this.#addToMinute(readNumber(key), value)
      this.#rows.remove(key)
    }
    for (const { key } of this.#over(this.#minutes, now - keptSeconds)) this.#minutes.remove(key)
    // A clock that was ahead has left rows that would never be over.
    for (const table of [this.#rows, this.#minutes])
      for (const key of [...table.keys({ start: numberKey(now + minuteSeconds + 1), limit: thinnedAtOnce })])
        table.remove(key)
  }

  /** Rows of before `from`, some of them where there are many. */
  #over(table: Table, from: number): TableEntry[] {
    const over: TableEntry[] = []
    for (const { key, value } of table.span({ limit: thinnedAtOnce })) {
      if (readNumber(key) >= from) break
      over.push({ key: Buffer.from(key), value: Buffer.from(value) })
    }
    return over
  }

  #addToMinute(at: number, row: Uint8Array): void {
    const key = numberKey(at - (at % minuteSeconds))
    const before = this.#minutes.get(key)
    const [one, other] = [before && decodeRow(before), decodeRow(row)]
    if (one === undefined || one.set !== other.set) this.#minutes.put(key, Buffer.from(row))
    else {
      const kinds = this.#set(other.set)
      const values = other.values.map((value, index) =>
        kinds[index]?.[1] === 'counter' ? value + (one.values[index] ?? 0) : value,
      )
      this.#minutes.put(key, encodeRow(other.set, one.seconds + other.seconds, values))
    }
  }

  #set(number: number): ColumnNames {
    const known = this.#sets.get(number)
    if (known !== undefined) return known
    const found = this.#columns.get(numberKey(number))
    if (found === undefined) return []
    const names = (parsedJson(Buffer.from(found).toString()) ?? []) as ColumnNames
    this.#sets.set(number, names)
    return names
  }

  /** Rows whose stretches begin in [from, to), the oldest first: by the minute where they are older. */
  *rows(from: number, to: number): Iterable<HistoryRow> {
    this.#environment.refresh()
    const wanted = { start: numberKey(from), end: numberKey(to) }
    for (const table of [this.#minutes, this.#rows]) {
      for (const { key, value } of table.span(wanted)) {
        const { set, seconds, values } = decodeRow(value)
        yield { at: readNumber(key), seconds, columns: this.#set(set), values }
      }
    }
  }

  /** Adds a line, and removes the oldest ones above the bound. Only inside `write`. */
  putLine(kind: LineKind, ms: number, level: number, text: string): void {
    const table = this.#lines[kind]
    const key = Buffer.alloc(8)
    key.writeUIntBE(Math.max(0, ms), 0, 6)
    const last = table.floor(Buffer.concat([key.subarray(0, 6), Buffer.alloc(2, 0xff)]))?.key
    const isSame = last !== undefined && key.compare(last, 0, 6, 0, 6) === 0
    key.writeUInt16BE(isSame ? Math.min(0xffff, Buffer.from(last).readUInt16BE(6) + 1) : 0, 6)
    table.put(key, Buffer.concat([Buffer.of(level), Buffer.from(text)]))
    const most = kind === 'changes' ? changesMax : linesMax
    const over = table.count() - most
    if (over > 0) for (const oldest of [...table.keys({ limit: over })]) table.remove(oldest)
  }

  /** Lines of these kinds that lie before `before` (a key; absent: all), the newest first. */
  *lines(kinds: readonly LineKind[] = lineKinds, before?: Uint8Array): Iterable<LineEntry> {
    this.#environment.refresh()
    const walks = kinds.map((kind) => this.#backwards(kind, before))
    const heads = walks.map((walk) => walk.next())
    try {
      for (;;) {
        let newest = -1
        heads.forEach((head, at) => {
          const best = heads[newest]
          if (head.done !== true && (best === undefined || best.done || isBehind(head.value, best.value)))
            newest = at
        })
        const head = heads[newest]
        if (head === undefined || head.done === true) return
        yield head.value
        heads[newest] = (walks[newest] as Iterator<LineEntry>).next()
      }
    } finally {
      // A cursor that stays open keeps every page that is replaced: the file would grow with each transaction.
      for (const walk of walks) walk.return(undefined)
    }
  }

  *#backwards(kind: LineKind, before?: Uint8Array): Generator<LineEntry, undefined> {
    const start = before === undefined ? {} : { start: before }
    for (const { key, value } of this.#lines[kind].span({ ...start, backwards: true })) {
      if (before !== undefined && Buffer.compare(key, before) >= 0) continue
      const [level = 0] = value
      yield { key: Buffer.from(key), level, text: Buffer.from(value.subarray(1)).toString() }
    }
    return undefined
  }

  /** A value that is remembered from one start to the next; undefined where there is none. */
  remembered(name: string): string | undefined {
    const found = this.#state.get(Buffer.from(name))
    return found === undefined ? undefined : Buffer.from(found).toString()
  }

  /** Only inside `write`. */
  remember(name: string, text: string): void {
    this.#state.put(Buffer.from(name), Buffer.from(text))
  }

  /** All or nothing. Throws what `isDiskError` knows where the disk does not take it. */
  write(act: () => void): void {
    this.#environment.write(act)
  }

  async close(): Promise<void> {
    await this.#environment.close()
  }
}

/** Opens the history for writing. One that is damaged is removed: nothing rests on it. */
export function openHistory(path: string, onRemoved: (error: BrokenDatabase) => void): HistoryStore {
  try {
    return new HistoryStore(path)
  } catch (error) {
    if (!(error instanceof BrokenDatabase)) throw error
    onRemoved(error)
    rmSync(path, { recursive: true, force: true })
    return new HistoryStore(path)
  }
}

function isBehind(one: LineEntry, other: LineEntry): boolean {
  return Buffer.compare(one.key, other.key) > 0
}

function numberKey(number: number): Buffer {
  const key = Buffer.alloc(4)
  key.writeUInt32BE(Math.min(Math.max(0, number), 0xffff_ffff))
  return key
}

const readNumber = (key: Uint8Array): number => Buffer.from(key).readUInt32BE()

function encodeRow(set: number, seconds: number, values: Float64Array): Buffer {
  const row = Buffer.alloc(headBytes + values.length * 8)
  row.writeUInt32BE(set, 0)
  row.writeUInt32BE(seconds, 4)
  row.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), headBytes)
  return row
}

function decodeRow(bytes: Uint8Array): {
  readonly set: number
  readonly seconds: number
  readonly values: Float64Array
} {
  const row = Buffer.from(bytes)
  // A copy of its own, because an array of doubles must be aligned.
  const values = new Float64Array(new Uint8Array(row.subarray(headBytes)).buffer)
  return { set: row.readUInt32BE(0), seconds: row.readUInt32BE(4), values }
}
