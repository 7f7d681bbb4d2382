import { choice, flag, list, maybeText, whole } from './setting.js'

const month = 31 * 86_400

/** The index given away, and the indexes of others that are looked into. */
export const bands = {
  publish: flag({
    env: 'INDEX_PUBLISH',
    default: false,
    why: 'Builds bands of the index and gives them away below /gateway/indexes, signed. Takes as much disk as they have bytes.',
  }),
  parquet: flag({
    env: 'INDEX_PARQUET',
    default: false,
    why: 'Builds Parquet bands of the base layer too, with INDEX_PUBLISH. Some 15 GB for the whole network.',
  }),
  publisher: maybeText({
    env: 'INDEX_PUBLISHER',
    shape: /^[1-9A-HJ-NP-Za-km-z]{32,44}$/,
    allowed: 'a base58 address',
    why: 'Wallet of this gateway as the registry knows it. Unset: the address of the key that signs.',
  }),
  domain: choice({
    env: 'INDEX_SIGNATURE_DOMAIN',
    default: 'vocabulary',
    of: ['vocabulary', 'neutral', 'ar-io'],
    why: 'First line of the signed message: that of the interface vocabulary, or one in particular.',
  }),
  ttlSeconds: whole({
    env: 'INDEX_TTL_SECONDS',
    default: 86_400,
    min: 60,
    max: month,
    why: 'How long a publication counts; it is renewed at half of it.',
  }),
  scanSeconds: whole({
    env: 'INDEX_SCAN_SECONDS',
    default: 60,
    min: 1,
    max: 86_400,
    why: 'Time between two looks at what is due and what lies on disk.',
  }),
  graceSeconds: whole({
    env: 'INDEX_SUPERSEDE_GRACE_SECONDS',
    default: 300,
    min: 0,
    max: month,
    why: 'A band that a newer one replaced stays on disk so long after it was last offered.',
  }),
  historyBlocks: whole({
    env: 'INDEX_HISTORY_BLOCKS',
    default: 200_000,
    min: 100,
    max: 100_000_000,
    why: 'Blocks of one history band, which is never rebuilt.',
  }),
  recentSeconds: whole({
    env: 'INDEX_RECENT_EVERY_SECONDS',
    default: 7 * 86_400,
    min: 1,
    max: month,
    why: 'How often the settled blocks above the last history band are built into a recent band.',
  }),
  deltaSeconds: whole({
    env: 'INDEX_DELTA_EVERY_SECONDS',
    default: 86_400,
    min: 1,
    max: month,
    why: 'How often the bands that reach to the tip are built anew.',
  }),
  sources: list({
    env: 'CDB64_ROOT_TX_INDEX_SOURCES',
    default: [],
    shape: /^[^\s,]+$/,
    allowed: 'a path, an http(s) address, ID, ID:OFFSET:SIZE, the latter two also with :manifest',
    why: 'Indexes that are searched after our own bands for the place of an item, in this order. Their answers are proven.',
  }),
  watch: flag({
    env: 'CDB64_ROOT_TX_INDEX_WATCH',
    default: true,
    why: 'Sees new indexes at those of the paths that are folders, within 30 seconds.',
  }),
  regionsMax: whole({
    env: 'CDB64_REMOTE_CACHE_MAX_REGIONS',
    default: 100,
    min: 1,
    max: 1_000_000,
    why: 'Parts of a remote index that are remembered, some 500 bytes each, per index and edge thread.',
  }),
  regionMs: whole({
    env: 'CDB64_REMOTE_CACHE_TTL_MS',
    default: 300_000,
    min: 0,
    max: 86_400_000,
    why: 'How long each of these parts is remembered.',
  }),
  requestMs: whole({
    env: 'CDB64_REMOTE_REQUEST_TIMEOUT_MS',
    default: 1500,
    min: 100,
    max: 600_000,
    why: 'Timeout of a read of a remote index; if its header is late, too, it rests for 30 s. Requests for unknown ids wait.',
  }),
  requestsMax: whole({
    env: 'CDB64_REMOTE_MAX_CONCURRENT_REQUESTS',
    default: 4,
    min: 1,
    max: 64,
    why: 'Requests to one remote index at the same time.',
  }),
  turnMs: whole({
    env: 'CDB64_REMOTE_SEMAPHORE_TIMEOUT_MS',
    default: 5000,
    min: 1,
    max: 600_000,
    why: 'How long a request waits for a free place among these.',
  }),
}
