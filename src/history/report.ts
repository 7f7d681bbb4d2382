import { parsedJson } from '../format/json.js'
import { roomMinBytes } from '../store/disk-full.js'
import type { HistoryRow, HistoryStore, LineKind } from './history-store.js'

/** Steps of a report at most. */
const stepsMax = 300
/** The pace of the disk is computed over this many seconds; it is absent below the minimum. */
const paceSeconds = 21_600
const paceLeastSeconds = 1800

/** Numbers of a stretch of time, cut into equal steps. */
export interface HistoryReport {
  readonly fromMs: number
  readonly stepMs: number
  /** Seconds of each step in which the program ran. */
  readonly covered: readonly number[]
  /** Growth in each step, by series; those that did not grow are left out. */
  readonly counters: Readonly<Record<string, readonly number[]>>
  /** The last value in each step; null where the program did not run. */
  readonly gauges: Readonly<Record<string, readonly (number | null)[]>>
}

/** What the rows of [from, to) say (seconds), in steps of at least `rowSeconds`. */
export function historyReport(
  store: Pick<HistoryStore, 'rows'>,
  from: number,
  to: number,
  rowSeconds: number,
): HistoryReport {
  const step = Math.max(rowSeconds, Math.ceil((to - from) / stepsMax / rowSeconds) * rowSeconds)
  const steps = Math.ceil((to - from) / step)
  const covered = new Array<number>(steps).fill(0)
  const counters = new Map<string, number[]>()
  const gauges = new Map<string, (number | null)[]>()
  for (const { at, seconds, columns, values } of store.rows(from, to)) {
    const index = Math.floor((at - from) / step)
    covered[index] = Math.min(step, (covered[index] ?? 0) + seconds)
    columns.forEach(([name, kind], place) => {
      const value = values[place] ?? 0
      if (kind === 'gauge') listOf(gauges, name, steps, null)[index] = value
      else if (value !== 0) {
        const list = listOf(counters, name, steps, 0)
        list[index] = (list[index] ?? 0) + value
      }
    })
  }
  return {
    fromMs: from * 1000,
    stepMs: step * 1000,
    covered,
    counters: Object.fromEntries(counters),
    gauges: Object.fromEntries(gauges),
  }
}

function listOf<Value>(lists: Map<string, Value[]>, name: string, length: number, value: Value): Value[] {
  const found = lists.get(name) ?? new Array<Value>(length).fill(value)
  lists.set(name, found)
  return found
}

/** How the room on the disk changes. */
export interface DiskForecast {
  readonly freeBytes: number
  /** Negative: it becomes less. */
  readonly bytesPerDay: number
  /** Until writes are refused at this pace. Absent: never. */
  readonly fullInSeconds?: number
  /** The stretch of time that the pace is taken from. */
  readonly overSeconds: number
}

/** The pace of the last hours, as the line of least squares has it; undefined where too little is known. */
export function diskForecast(store: Pick<HistoryStore, 'rows'>, now: number): DiskForecast | undefined {
  const points = [...store.rows(now - paceSeconds, now + 1)].flatMap((row) => freeIn(row) ?? [])
  const [first, last] = [points[0], points.at(-1)]
  if (first === undefined || last === undefined || last.at - first.at < paceLeastSeconds) return undefined
  const middle = (of: 'at' | 'free'): number =>
    points.reduce((sum, point) => sum + point[of], 0) / points.length
  const [at, free] = [middle('at'), middle('free')]
  const above = points.reduce((sum, point) => sum + (point.at - at) * (point.free - free), 0)
  const below = points.reduce((sum, point) => sum + (point.at - at) ** 2, 0)
  const perSecond = above / below
  const room = Math.max(0, last.free - roomMinBytes)
  return {
    freeBytes: last.free,
    bytesPerDay: Math.round(perSecond * 86_400),
    ...(perSecond < 0 ? { fullInSeconds: Math.round(room / -perSecond) } : {}),
    overSeconds: last.at - first.at,
  }
}

function freeIn({ at, columns, values }: HistoryRow): { at: number; free: number } | undefined {
  const place = columns.findIndex(([name]) => name === 'data_disk_free_bytes')
  const free = values[place]
  // 0: nobody had looked at the disk yet.
  return free === undefined || free === 0 ? undefined : { at, free }
}

/** Which lines are wanted, the newest first. */
export interface LineWish {
  readonly kinds: readonly LineKind[]
  /** The least level, as pino counts: 30 info, 40 warn, 50 error, 60 fatal. */
  readonly levelMin: number
  /** In any case of letters; '' for all. */
  readonly find: string
  /** Where the page before ended; absent: at the newest line. */
  readonly cursor?: string
  readonly limit: number
}

export interface LinePage {
  /** The lines as they were written, JSON. */
  readonly lines: readonly unknown[]
  /** The cursor of the next page; absent: there are no more. A page may be empty and still have one. */
  readonly next?: string
}

/** Lines that are looked at for one page. */
const lookedAtMax = 4000

/** A page of lines. */
export function linesPage(
  store: Pick<HistoryStore, 'lines'>,
  { kinds, levelMin, find, cursor, limit }: LineWish,
): LinePage {
  const lines: unknown[] = []
  const wanted = find.toLowerCase()
  let lookedAt = 0
  const start = cursor === undefined ? undefined : Buffer.from(cursor, 'hex')
  for (const { key, level, text } of store.lines(kinds, start)) {
    lookedAt += 1
    if (level >= levelMin && (wanted === '' || text.toLowerCase().includes(wanted)))
      lines.push(parsedJson(text) ?? { text })
    if (lines.length === limit || lookedAt === lookedAtMax)
      return { lines, next: Buffer.from(key).toString('hex') }
  }
  return { lines }
}
