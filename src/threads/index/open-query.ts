import { systemClock } from '../../actor/clock.js'
import { createLog } from '../../actor/log.js'
import { answer } from '../../actor/mailbox-address.js'
import { Meters } from '../../actor/meter.js'
import { meterTable } from '../../actor/meter-table.js'
import { ranks, stepBack } from '../../actor/priority.js'
import type { OpenThread } from '../../actor/run-thread.js'
import { Generations } from '../../catalog/generations.js'
import { ChainIndex } from '../../catalog/index-reader.js'
import { IndexedCatalog } from '../../catalog/indexed.js'
import { openCatalogTables } from '../../catalog/tables.js'
import { StableIndex } from '../../clickhouse/stable-index.js'
import { openQueries } from '../../query/open-queries.js'
import { queryLimits } from '../../query/query-limits.js'
import type { QueryLineAbout, QueryOrder, QueryReply } from '../../query/query-messages.js'
import { movedOf } from '../../query/scheduler.js'
import { chainOptions } from '../chain-options.js'
import { folders } from '../folders.js'
import type { SharedMemory } from '../shared-memory.js'
import type { SettingsOf } from '../thread-settings.js'
import { openClickhouse } from './open-clickhouse.js'

/**
 * What a thread is started with that answers queries. It answers `QueryOrder` with `QueryReply` on every port that comes with a
 * `QueryLineAbout`. Plain: it is cloned.
 */
export interface QueryGiven {
  readonly settings: SettingsOf<'query'>
  readonly memory: SharedMemory
  /** Row of this thread in the meter table. */
  readonly row: number
  /** Base URLs of nodes, queried for signatures that nothing here has. */
  readonly nodes: readonly string[]
}

/** One thread that answers queries, beside those that serve sockets. */
export function openQuery({ settings, memory, row, nodes }: QueryGiven): OpenThread {
  const log = createLog(settings.server.logLevel, 'query')
  stepBack(ranks.query, log)
  const path = folders(settings).catalog
  const generations = new Generations(memory.generations)
  const { environment } = openCatalogTables(path)
  const index = new ChainIndex(environment, generations)
  const catalog = new IndexedCatalog(path, generations, index)
  const meters = new Meters(meterTable, memory.meters, row)
  const { threads: _, waitingMax, clientMax, waitMs, ...limits } = settings.queries
  const clickhouse = openClickhouse(settings)
  const chain = { index, forkDepth: settings.indexing.forkDepthMax }
  const stable = clickhouse && new StableIndex(clickhouse, systemClock, log, chain)
  const queries = openQueries(
    {
      chain: chainOptions(nodes, settings),
      limits: { ...queryLimits, ...limits },
      queue: { waitingMax, clientMax, waitMs },
    },
    { index, catalog, clock: systemClock, log, meters, stable },
  )
  return {
    connect(port, about) {
      const left = new Int32Array((about as QueryLineAbout).left)
      answer<QueryOrder, QueryReply>(
        port,
        ({ request, client, place }) =>
          queries.scheduler.ask(request, client, () => Atomics.load(left, place) !== 0),
        { movesOf: movedOf },
      )
    },
    async close() {
      await queries.close()
      await stable?.close()
      await catalog.close()
      await environment.close()
    },
  }
}
