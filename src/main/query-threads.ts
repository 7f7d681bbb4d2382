import type { MessagePort } from 'node:worker_threads'
import type { Config } from '../../config/read.js'
import type { Part } from '../actor/supervise.js'
import { leftTable } from '../query/lines.js'
import type { QueryLineAbout } from '../query/query-messages.js'
import type { QueryGiven } from '../threads/open-query.js'
import type { SharedMemory } from '../threads/shared-memory.js'
import { settingsOf } from '../threads/thread-settings.js'

/** The threads of the program, as far as queries need them. */
interface ThreadStarter {
  line(name: string, about?: object): MessagePort
  part(name: string, file: string, data: () => object): Part
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
  return {
    parts: names.map((name, at) => starter.part(name, 'query', () => thread(at))),
    lines: () => {
      const left = names.map(() => leftTable(config.queries))
      const queries = names.map((name, at) => {
        return starter.line(name, { left: left[at] as SharedArrayBuffer } satisfies QueryLineAbout)
      })
      return { queries, left }
    },
  }
}
