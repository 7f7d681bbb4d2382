import type { MessagePort } from 'node:worker_threads'
import type { Config } from '../../config/read.js'
import { systemClock } from '../actor/clock.js'
import { type BoostedThread, ownThreadControl, PriorityBoost } from '../actor/priority-boost.js'
import type { Part } from '../actor/supervise.js'
import { LeftTables } from '../query/lines.js'
import type { QueryLineAbout } from '../query/query-messages.js'
import type { QueryGiven, QueryReady } from '../threads/open-query.js'
import type { SharedMemory } from '../threads/shared-memory.js'
import { settingsOf } from '../threads/thread-settings.js'

/** The threads of the program, as far as queries need them. */
interface ThreadStarter {
  reported<Reported>(name: string): Reported
  line(name: string, about?: object): MessagePort
  part(name: string, file: string, data: () => object): Part
}

interface QueryThreads {
  readonly parts: Part[]
  /** New lines for the edge thread at this place (from 0): the first there, or one that replaces it. */
  lines(edge: number): { readonly queries: MessagePort[]; readonly left: SharedArrayBuffer[] }
  /** Prevents starvation of the threads; to be started after all edge threads. */
  readonly boost: Part
}

/** The threads that answer queries, all up before an edge thread, and what each edge thread gets of them. */
export function queryThreads(
  config: Config,
  nodes: () => readonly string[],
  shared: SharedMemory,
  starter: ThreadStarter,
): QueryThreads {
  const { threads } = config.queries
  const names = Array.from({ length: threads }, (_, at) => `query-${at + 1}`)
  const thread = (at: number): QueryGiven => ({
    settings: settingsOf(config, 'query'),
    memory: shared,
    row: shared.rows.queries + at,
    nodes: nodes(),
  })
  const tables = names.map(() => new LeftTables(config.queries))
  const boosted = (): BoostedThread[] =>
    names.flatMap((name, at) => {
      const { thread: number } = starter.reported<QueryReady>(name)
      const isWanted = (): boolean => tables[at]?.areUnderWay === true
      const whenWanted = (act: () => void): void => tables[at]?.whenUnderWay(act)
      return number === undefined ? [] : [{ thread: number, isWanted, whenWanted }]
    })
  return {
    boost: {
      name: 'boost',
      start: async () => {
        const timer = new PriorityBoost(boosted(), ownThreadControl).keep(systemClock)
        return { stop: async () => timer.cancel() }
      },
    },
    parts: names.map((name, at) => starter.part(name, 'query', () => thread(at))),
    lines: (edge) => {
      const left = tables.map((one) => one.renew(edge))
      const queries = names.map((name, at) => {
        return starter.line(name, { left: left[at] as SharedArrayBuffer } satisfies QueryLineAbout)
      })
      return { queries, left }
    },
  }
}
