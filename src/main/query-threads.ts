import type { MessagePort } from 'node:worker_threads'
import type { Config } from '../../config/read.js'
import { systemClock } from '../actor/clock.js'
import { type Hand, ownThreadControl, PriorityBoost } from '../actor/priority-boost.js'
import type { Part } from '../actor/supervise.js'
import { queryLimits } from '../query/limits.js'
import { LeftTables } from '../query/lines.js'
import type { QueryLineAbout } from '../query/protocol.js'
import type { QueryAsking, QueryThread, QueryThreadSaid } from '../query/wiring.js'
import { folders } from './folders.js'
import { chainOptions } from './network.js'
import type { SharedTables } from './threads.js'

/** The threads of the program, as far as queries need them. */
interface ThreadStarter {
  said<Said>(name: string): Said
  line(name: string, about?: object): MessagePort
  part(name: string, file: string, data: () => object): Part
}

interface QueryThreads {
  readonly parts: Part[]
  /** What the edge thread at this place (from 0) is told: the first there, or one that replaces it. */
  asking(edge: number): QueryAsking
  /** Prevents starvation of the threads; to be started after all edge threads. */
  readonly boost: Part
}

/** Answers that clients have not taken yet, each edge thread, in answers of the largest size. */
const heldAnswers = 8

/** The threads that answer queries, all up before an edge thread, and what each edge thread is told of them. */
export function queryThreads(
  config: Config,
  nodes: () => readonly string[],
  shared: SharedTables,
  starter: ThreadStarter,
): QueryThreads {
  const { threads, waitingMax, clientMax, waitMs, ...limits } = config.queries
  const queue = { waitingMax, clientMax, waitMs }
  const names = Array.from({ length: threads }, (_, at) => `query-${at + 1}`)
  const thread = (at: number): QueryThread => ({
    row: shared.rows.queries + at,
    catalogPath: folders(config).catalog,
    generations: shared.generations,
    meters: shared.meters,
    chain: chainOptions(nodes(), config),
    limits: { ...queryLimits, ...limits },
    queue,
    logLevel: config.server.logLevel,
  })
  const tables = names.map(() => new LeftTables(queue))
  const hands = (): Hand[] =>
    names.flatMap((name, at) => {
      const { thread: number } = starter.said<QueryThreadSaid>(name)
      const isWanted = (): boolean => tables[at]?.areUnderWay === true
      return number === undefined ? [] : [{ thread: number, isWanted }]
    })
  return {
    boost: {
      name: 'boost',
      start: async () => {
        const timer = new PriorityBoost(hands(), ownThreadControl).keep(systemClock)
        return { stop: async () => timer.cancel() }
      },
    },
    parts: names.map((name, at) => starter.part(name, 'query', () => thread(at))),
    asking: (edge) => {
      const left = tables.map((one) => one.renew(edge))
      const queryPorts = names.map((name, at) => {
        return starter.line(name, { left: left[at] as SharedArrayBuffer } satisfies QueryLineAbout)
      })
      const { trustedProxies, ipv6PrefixBits } = config.limits
      const { sizeMaxBytes } = queryLimits
      const heldMaxBytes = limits.answerMaxBytes * heldAnswers
      const clients = { trustedProxies, ipv6PrefixBits }
      return { queryPorts, queries: { left, queue, sizeMaxBytes, heldMaxBytes, clients } }
    },
  }
}
