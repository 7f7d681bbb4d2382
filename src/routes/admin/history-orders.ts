import type { Clock } from '../../actor/clock.js'
import {
  fineSeconds,
  HistoryStore,
  keptSeconds,
  minuteSeconds,
  rowSeconds,
} from '../../history/history-store.js'
import { diskForecast, historyReport, type LineWish, linesPage } from '../../history/report.js'
import { isDiskError } from '../../store/disk-error.js'
import { isDamage } from '../../store/lmdb.js'
import { malformedOrder, type Order, type OrderAnswer } from './order.js'

export interface HistoryOrderParts {
  /** Folder of the history. */
  readonly path: string
  readonly clock: Clock
}

const findMaxLength = 200
const linesMax = 200
const levels: Readonly<Record<string, number>> = { all: 0, info: 30, warn: 40, error: 50, fatal: 60 }
const kinds: Readonly<Record<string, LineWish['kinds']>> = {
  all: ['requests', 'events', 'changes'],
  requests: ['requests'],
  events: ['events'],
  changes: ['changes'],
}

/** Orders about what happened in the last 24 hours. */
export class HistoryOrders {
  #store: HistoryStore | undefined

  constructor(private readonly parts: HistoryOrderParts) {}

  list(): Order[] {
    return [
      {
        method: 'GET',
        path: 'history',
        summary: 'Numbers of the last 24 hours, in steps',
        statuses: [200, 503],
        queryNames: ['minutes', 'endMs'],
        act: ({ query }) => this.#report(query),
      },
      {
        method: 'GET',
        path: 'log',
        summary: 'Lines of the log and changes of the last 24 hours, the newest first',
        statuses: [200, 503],
        queryNames: ['kind', 'level', 'find', 'cursor', 'limit'],
        act: ({ query }) => this.#lines(query),
      },
    ]
  }

  /** The part of the program that writes the history may have failed to open it; then there is none to read. */
  #read<Found extends object>(read: (store: HistoryStore) => Found): OrderAnswer {
    try {
      this.#store ??= new HistoryStore(this.parts.path)
      return { status: 200, body: read(this.#store) }
    } catch (error) {
      if (!isDiskError(error) && !isDamage(error)) throw error
      return { status: 503, body: `The history cannot be read: ${(error as Error).message}` }
    }
  }

  #report(query: URLSearchParams): OrderAnswer {
    const now = Math.floor(this.parts.clock.now() / 1000)
    const minutes = Number(query.get('minutes') ?? 60)
    const end = Number(query.get('endMs') ?? now * 1000) / 1000
    if (!Number.isInteger(minutes) || minutes < 1 || minutes > keptSeconds / 60)
      return malformedOrder('minutes must be a whole number from 1 to 1440')
    if (!Number.isFinite(end)) return malformedOrder('endMs must be a time in milliseconds')
    // The row of the present stretch is not there yet.
    const to = Math.floor(Math.min(end, now) / rowSeconds) * rowSeconds
    const from = to - minutes * 60
    const step = now - from > fineSeconds ? minuteSeconds : rowSeconds
    return this.#read((store) => ({
      ...historyReport(store, from, to, step),
      disk: diskForecast(store, now),
    }))
  }

  #lines(query: URLSearchParams): OrderAnswer {
    const kind = kinds[query.get('kind') ?? 'all']
    const levelMin = levels[query.get('level') ?? 'all']
    const find = query.get('find') ?? ''
    const cursor = query.get('cursor') ?? undefined
    const limit = Number(query.get('limit') ?? 100)
    if (kind === undefined) return malformedOrder(`kind must be one of ${Object.keys(kinds).join(', ')}`)
    if (levelMin === undefined)
      return malformedOrder(`level must be one of ${Object.keys(levels).join(', ')}`)
    if (find.length > findMaxLength)
      return malformedOrder(`find must have at most ${findMaxLength} characters`)
    if (cursor !== undefined && !/^[0-9a-f]{16}$/.test(cursor))
      return malformedOrder('cursor must be the `next` of another answer')
    if (!Number.isInteger(limit) || limit < 1 || limit > linesMax)
      return malformedOrder(`limit must be a whole number from 1 to ${linesMax}`)
    return this.#read((store) =>
      linesPage(store, { kinds: kind, levelMin, find, limit, ...(cursor && { cursor }) }),
    )
  }

  async close(): Promise<void> {
    await this.#store?.close()
  }
}
