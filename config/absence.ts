import { flag, whole } from './setting.js'

const week = 7 * 24 * 3600 * 1000

/** When an id that nobody knows is answered from memory. */
export const absence = {
  enabled: flag({
    env: 'NEGATIVE_CACHE_ENABLED',
    default: false,
    why: 'Remember ids that every source stated it does not know. Failures and time-outs are never remembered.',
  }),
  rememberedMax: whole({
    env: 'NEGATIVE_CACHE_MAX_SIZE',
    default: 100_000,
    min: 1,
    max: 10_000_000,
    why: 'Ids watched or remembered; each takes about 300 bytes of memory.',
  }),
  missesMin: whole({
    env: 'NEGATIVE_CACHE_MISS_COUNT_THRESHOLD',
    default: 10,
    min: 1,
    max: 1_000_000,
    why: 'Questions without result before an id is remembered.',
  }),
  spreadMs: whole({
    env: 'NEGATIVE_CACHE_MISS_THRESHOLD_MS',
    default: 300_000,
    min: 0,
    max: week,
    why: 'Time over which those questions must come.',
  }),
  rememberedMs: whole({
    env: 'NEGATIVE_CACHE_TTL_MS',
    default: 7_200_000,
    min: 1,
    max: week,
    why: 'How long it is remembered then; twice as long each time again. What the index learns counts at once.',
  }),
  rememberedMaxMs: whole({
    env: 'NEGATIVE_CACHE_MAX_TTL_MS',
    default: 172_800_000,
    min: 1,
    max: 4 * week,
    why: 'The longest that an id is remembered.',
  }),
}
