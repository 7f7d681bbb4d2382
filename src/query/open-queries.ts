import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Meters } from '../actor/meter.js'
import { processorTime } from '../actor/processor-time.js'
import type { Catalog } from '../catalog/catalog-messages.js'
import type { ChainIndex } from '../catalog/index-reader.js'
import type { Chain } from '../chain/chain.js'
import type { RemoteChain } from '../chain/remote-chain.js'
import type { ChainOptions } from '../chain/remote-chain-options.js'
import type { StableIndex } from '../clickhouse/stable-index.js'
import { GraphqlOverHttp } from './graphql-over-http.js'
import { LearnedHeaders } from './learned-headers.js'
import { MinedHeaders } from './mined-headers.js'
import type { QueryLimits } from './query-limits.js'
import type { QueryQueue } from './query-messages.js'
import { QueryMeters } from './query-meters.js'
import { QueryScheduler } from './scheduler.js'

export interface QueryOptions {
  /** Nodes that give the signatures that nothing here has. */
  readonly chain: ChainOptions
  readonly limits: QueryLimits
  readonly queue: QueryQueue
}

export interface QueryParts {
  readonly index: ChainIndex
  readonly catalog: Catalog
  readonly clock: Clock
  readonly log: Log
  readonly meters: Meters
  readonly stable?: StableIndex | undefined
}

/** The queue of one query thread, and what closes its connections. */
export function openQueries(
  { chain: nodes, limits, queue }: QueryOptions,
  { index, catalog, clock, log, meters, stable }: QueryParts,
): { readonly scheduler: QueryScheduler; close(): Promise<void> } {
  const chain = new LateChain(nodes, clock)
  const waiting = meters.of('graphql_queries_waiting')
  const answers = new GraphqlOverHttp({
    index,
    clock,
    limits,
    headers: new MinedHeaders(new LearnedHeaders(catalog), index, chain),
    meters: new QueryMeters(meters),
    stable,
  })
  const onSize = (size: number): void => waiting.set(size)
  const scheduler = new QueryScheduler({
    answers,
    queue,
    clock,
    log,
    onSize,
    work: processorTime,
    isDamage: (error) => index.reportDamage(error),
  })
  return { scheduler, close: () => chain.close() }
}

/** A client of nodes, loaded with the first request to one: most queries need none. */
class LateChain implements Pick<Chain, 'transaction'> {
  #loading: Promise<RemoteChain> | undefined

  constructor(
    private readonly options: ChainOptions,
    private readonly clock: Clock,
  ) {}

  readonly transaction: Chain['transaction'] = async (id, options) => {
    this.#loading ??= import('../chain/remote-chain.js').then(({ RemoteChain }) => {
      return new RemoteChain(this.options, this.clock)
    })
    return (await this.#loading).transaction(id, options)
  }

  async close(): Promise<void> {
    await (await this.#loading)?.close()
  }
}
