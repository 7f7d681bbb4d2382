import type { NameCacheOptions } from '../../src/names/name-cache.js'
import { namesDefaults } from '../../src/names/names-defaults.js'

const { absentMs, failedMs, refreshMs, flightsMax } = namesDefaults

/** A cache of a hundred names, which resolvers fill one after the other. */
export const cacheOptions: NameCacheOptions = {
  absentMs,
  failedMs,
  refreshMs,
  flightsMax,
  staleMs: 1e6,
  namesMax: 100,
  fallbackMs: 250,
  resolversAtOnce: 1,
  preferred: [],
  preferredBases: new Set<string>(),
}
