import type { NameCacheOptions } from './name-cache.js'
import type { NamesThread } from './open-names.js'

/** Values that are no settings. */
export const namesDefaults: Pick<NamesThread, 'guard'> &
  Pick<NameCacheOptions, 'absentMs' | 'failedMs' | 'refreshMs' | 'flightsMax'> = {
  guard: { failuresMax: 5, restMs: 1000, restMaxMs: 30_000 },
  absentMs: 30_000,
  failedMs: 1000,
  refreshMs: 30_000,
  // Each may be a connection to a host of its own; more names than this at the same time are taken for a flood.
  flightsMax: 128,
}
