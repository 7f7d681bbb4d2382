import type { Clock } from '../../actor/clock.js'
import { residentBytes } from '../../actor/resident-memory.js'
import type { SampleRings } from '../../actor/sample-rings.js'
import type { Readiness } from '../../actor/shared.js'
import type { ModerationStore } from '../../moderation/moderation-store.js'
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
  /** Which services of this program are there; those that it does not run are not named. */
  readonly services: { readonly upload?: string; readonly payment?: string }
  readonly readiness: Readiness
  /** This machine is in a cluster. */
  readonly hasCluster?: boolean
  /** The last payments, where payments are taken. */
  readonly payments?: (max: number) => readonly object[]
}

/**
 * Everything that the console shows besides numbers, which it reads from the metrics. The answer is bounded, and nothing is
 * counted for it.
 */
export function overviewOrder(parts: OverviewParts): Order {
  const { info, store, resources, limited, clock, payments, services, readiness, hasCluster = false } = parts
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
          memory: { residentBytes: residentBytes() },
          cache: cacheUsage(parts),
          services: Object.fromEntries(
            (['upload', 'payment'] as const)
              .filter((name) => services[name] !== undefined)
              .map((name) => [name, readiness.has(name) ? 'running' : 'starting']),
          ),
          hasCluster,
          moderation: store.counts(),
          resources: resources.top(now - sinceMs, topMax),
          limited: limited.top(now - sinceMs, topMax),
          ...(payments === undefined ? {} : { payments: payments(topMax) }),
        },
      }
    },
  }
}
