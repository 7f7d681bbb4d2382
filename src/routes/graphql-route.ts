import type { Meters } from '../actor/meter.js'
import { createQueryHandler, type QueryRouteParts } from '../query/query-handler.js'
import type { Route } from '../serving/route.js'

export interface GraphqlParts extends Omit<QueryRouteParts, 'onBusy'> {
  readonly meters: Meters
}

/** `GET|POST /graphql`: queries over the index, and a page for browsers. Query threads answer. */
export function graphqlRoute({ meters, ...parts }: GraphqlParts): Route {
  const path = '/graphql'
  const busy = meters.of('graphql_requests_total', { outcome: 'busy' })
  return {
    family: 'other',
    path,
    methods: ['GET', 'POST'],
    about: [
      {
        path,
        summary: 'Queries over the index',
        statuses: [200, 400, 413, 415, 503],
        query: ['query'],
      },
    ],
    handle: createQueryHandler({ ...parts, onBusy: () => busy.add(1) }),
  }
}
