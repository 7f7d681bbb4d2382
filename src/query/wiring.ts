import type { Clock } from '../actor/clock.js'
import type { Meters } from '../actor/meter.js'
import type { ChainIndex } from '../catalog/index-reader.js'
import type { Catalog } from '../catalog/protocol.js'
import type { Chain } from '../chain/chain.js'
import { LearnedHeaders } from './learned-headers.js'
import { queryLimits } from './limits.js'
import { QueryMeters } from './meters.js'
import { MinedHeaders } from './mined-headers.js'
import { createQueryHandler, type QueryHandler } from './route.js'

export interface QueryParts {
  readonly index: ChainIndex
  readonly catalog: Catalog
  readonly chain: Chain
  readonly clock: Clock
  readonly meters: Meters
}

/** What answers queries on one edge thread. */
export function openQueries({ index, catalog, chain, clock, meters }: QueryParts): QueryHandler {
  return createQueryHandler({
    ...{ index, clock },
    headers: new MinedHeaders(new LearnedHeaders(catalog), index, chain),
    limits: queryLimits,
    meters: new QueryMeters(meters),
  })
}
