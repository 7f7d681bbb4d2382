import type { Clock } from '../actor/clock.js'
import type { Meters } from '../actor/meter.js'
import type { Following, Tip } from '../actor/shared.js'
import { type Health, lifeOf } from '../http/life.js'
import { roomMinBytes } from '../store/disk-full.js'

export interface HealthParts {
  readonly clock: Clock
  readonly meters: Meters
  readonly startedMs: number
  readonly tip: Tip
  readonly following: Following
  /** After so long without a new data item the gateway is unhealthy. Absent: never. */
  readonly itemsSilentMs?: number
}

/** Whether the gateway is well, and if not why. */
export function healthOf({ clock, meters, startedMs, tip, following, itemsSilentMs }: HealthParts): Health {
  const now = clock.now()
  const silentMs = now - Math.max(following.itemIndexedMs, startedMs)
  const reasons = [
    ...(tip.height < 0 ? ['no base-layer node has answered yet'] : []),
    ...(following.state === 'halted'
      ? ['a fork is too deep: the index stands still, content is served']
      : []),
    ...(itemsSilentMs !== undefined && silentMs > itemsSilentMs
      ? [`no data item was indexed for ${Math.floor(silentMs / 1000)} seconds`]
      : []),
    // 0: nobody has looked at the disk yet.
    ...(meters.total('data_disk_size_bytes') > 0 && meters.total('data_disk_free_bytes') < roomMinBytes
      ? ['the disk of DATA_PATH is full: content is served, what is new is not kept']
      : []),
    ...(meters.total('catalog_damaged') > 0
      ? ['the catalog is damaged: see "A database is broken" in deploy/OPERATING.md']
      : []),
  ]
  const life = lifeOf({ clock, startedMs })
  return reasons.length === 0 ? life : { ...life, status: 'unhealthy', reasons }
}
