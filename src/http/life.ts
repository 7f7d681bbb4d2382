import type { Clock } from '../actor/clock.js'

/** The shape that clients of the network read: `uptime` in seconds, `date` in ISO 8601, `reasons` only where it is unhealthy. */
export interface Health {
  readonly status: 'ok' | 'unhealthy'
  readonly uptime: number
  readonly date: string
  readonly reasons?: readonly string[]
  /** What is less than it could be, although all is served. */
  readonly warnings?: readonly string[]
}

/** That this thread answers: nothing else is looked at. */
export function lifeOf({ clock, startedMs }: { readonly clock: Clock; readonly startedMs: number }): Health {
  const now = clock.now()
  return { status: 'ok', uptime: (now - startedMs) / 1000, date: new Date(now).toISOString() }
}
