import type { Clock } from '../../actor/clock.js'
import type { SampleRings } from '../../actor/sample-rings.js'
import type { ModerationStore } from '../../moderation/store.js'
import type { InfoParts } from '../about-gateway.js'
import { aboutGateway } from '../about-gateway.js'
import { healthOf } from '../health.js'
import { type CacheOrderParts, cacheUsage } from './cache-orders.js'
import type { Order } from './order.js'

/** The last five minutes. */
const sinceMs = 300_000
const topMax = 20

export interface OverviewParts extends Pick<CacheOrderParts, 'usage' | 'maxBytes'> {
  readonly info: InfoParts
  readonly store: ModerationStore
  readonly resources: SampleRings
  /** Addresses that were refused by a limit. */
  readonly limited: SampleRings
  readonly clock: Clock
  /** The last payments, where payments are taken. */
  readonly payments?: (max: number) => readonly object[]
}

/**
 * Everything that the console shows besides numbers, which it reads from the metrics. The answer is bounded, and nothing is
 * counted for it.
 */
export function overviewOrder(parts: OverviewParts): Order {
  const { info, store, resources, limited, clock, payments } = parts
  return {
    method: 'GET',
    path: 'overview',
    summary: 'What the console shows',
    statuses: [200],
    act: () => {
      const now = clock.now()
      return {
        status: 200,
        body: {
          now,
          info: aboutGateway(info),
          health: healthOf(info),
          memory: { residentBytes: process.memoryUsage.rss() },
          cache: cacheUsage(parts),
          moderation: store.counts(),
          resources: resources.top(now - sinceMs, topMax),
          limited: limited.top(now - sinceMs, topMax),
          ...(payments === undefined ? {} : { payments: payments(topMax) }),
        },
      }
    },
  }
}
