import type { MessagePort } from 'node:worker_threads'
import type { Config } from '../../config/read.js'
import type { Part } from '../actor/supervise.js'
import type { ThreadLine } from '../actor/thread.js'
import { leftTable } from '../query/lines.js'
import type { QueryLineAbout } from '../query/query-messages.js'
import type { QueryLineNews } from '../threads/edge-given.js'
import type { QueryGiven } from '../threads/index/open-query.js'
import type { SharedMemory } from '../threads/shared-memory.js'
import { settingsOf } from '../threads/thread-settings.js'

/** The threads of the program, as far as queries need them. */
interface ThreadStarter {
  line(name: string, about?: object): MessagePort
  replaceable(name: string, file: string, data: () => object, onReplaced: () => void): Part
  hand(file: string, to: string, line: () => ThreadLine): void
}

interface QueryThreads {
  readonly parts: Part[]
  /** New lines for an edge thread. */
  lines(): { readonly queries: MessagePort[]; readonly left: SharedArrayBuffer[] }
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
  const lineTo = (name: string) => {
    const left = leftTable(config.queries)
    return { left, port: starter.line(name, { left } satisfies QueryLineAbout) }
  }
  const handNew = (name: string, at: number): void =>
    starter.hand('edge', name, () => {
      const { port, left } = lineTo(name)
      return { port, about: { query: at, left } satisfies QueryLineNews }
    })
  return {
    parts: names.map((name, at) =>
      starter.replaceable(
        name,
        'query',
        () => thread(at),
        () => handNew(name, at),
      ),
    ),
    lines: () => {
      const lines = names.map(lineTo)
      return { queries: lines.map(({ port }) => port), left: lines.map(({ left }) => left) }
    },
  }
}
