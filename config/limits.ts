import { rangesAllowed, readRanges } from './ranges.js'
import { choice, custom, flag, readRedis, reloadable, secret, whole } from './setting.js'

/** Who a client is, how much each may have for free, and where that is counted. */

/** Loopback, private, carrier-grade NAT, link-local. */
const near =
  '127.0.0.0/8,::1,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,fc00::/7,100.64.0.0/10,169.254.0.0/16,fe80::/10'

const tokensMax = 2 ** 40
const refillMax = 2 ** 20

export const limits = {
  enabled: flag({
    env: 'ENABLE_RATE_LIMITER',
    default: false,
    why: 'Limits egress a client address and a resource. 1 token is 1 KiB.',
  }),
  type: choice({
    env: 'RATE_LIMITER_TYPE',
    default: 'memory',
    of: ['memory', 'redis'],
    why: 'Where buckets are counted. memory: this process and its disk. redis: shared by several gateways.',
  }),
  redisEndpoint: secret(
    custom({
      env: 'RATE_LIMITER_REDIS_ENDPOINT',
      allowed: 'host:port or a redis:// or rediss:// address',
      defaultText: 'redis://localhost:6379',
      default: 'redis://localhost:6379',
      read: readRedis,
      why: 'Redis with persistence (appendonly yes), for paid tokens live there.',
    }),
  ),
  redisTls: flag({
    env: 'RATE_LIMITER_REDIS_USE_TLS',
    default: false,
    why: 'TLS to Redis, whatever its address says.',
  }),
  redisCluster: flag({
    env: 'RATE_LIMITER_REDIS_USE_CLUSTER',
    default: false,
    why: 'The endpoint is a node of a cluster. All buckets lie in one slot, so that a take stays one step.',
  }),
  redisFailure: choice({
    env: 'RATE_LIMITER_REDIS_FAILURE',
    default: 'local',
    of: ['local', 'open', 'closed'],
    why: 'When Redis is slow or gone. local: each gateway counts by itself. open: everything is served. closed: 503.',
  }),
  redisTimeoutMs: whole({
    env: 'RATE_LIMITER_REDIS_TIMEOUT_MS',
    default: 250,
    min: 5,
    max: 10_000,
    why: 'An answer waits so long for Redis at most.',
  }),
  ipTokens: reloadable(
    whole({
      env: 'RATE_LIMITER_IP_TOKENS_PER_BUCKET',
      default: 100_000,
      min: 1,
      max: tokensMax,
      why: 'Tokens of a full bucket of a client address. Larger answers have to be requested in ranges, or paid.',
    }),
  ),
  ipRefill: reloadable(
    whole({
      env: 'RATE_LIMITER_IP_REFILL_PER_SEC',
      default: 20,
      min: 0,
      max: refillMax,
      why: 'Tokens a second for each client address.',
    }),
  ),
  resourceTokens: reloadable(
    whole({
      env: 'RATE_LIMITER_RESOURCE_TOKENS_PER_BUCKET',
      default: 1_000_000,
      min: 1,
      max: tokensMax,
      why: 'Tokens of a full bucket of a resource: host, method and path.',
    }),
  ),
  resourceRefill: reloadable(
    whole({
      env: 'RATE_LIMITER_RESOURCE_REFILL_PER_SEC',
      default: 100,
      min: 0,
      max: refillMax,
      why: 'Tokens a second for each resource.',
    }),
  ),
  bucketsMax: whole({
    env: 'RATE_LIMITER_BUCKETS_MAX',
    default: 262_144,
    min: 1024,
    max: 2 ** 26,
    why: 'Buckets of either kind in memory, a power of two, 32 bytes each; the fullest are forgotten first.',
  }),
  ipv6PrefixBits: whole({
    env: 'RATE_LIMITER_IPV6_PREFIX_BITS',
    default: 64,
    min: 16,
    max: 128,
    why: 'IPv6 clients with so many bits in common share a bucket: a subscriber has at least a /64.',
  }),
  exempt: reloadable(
    custom<readonly string[]>({
      env: 'RATE_LIMITER_IPS_AND_CIDRS_ALLOWLIST',
      allowed: rangesAllowed,
      defaultText: '',
      default: [],
      read: readRanges,
      why: 'Clients that are never limited and never pay.',
    }),
  ),
  exemptNames: reloadable(
    custom<readonly string[]>({
      env: 'RATE_LIMITER_ARNS_ALLOWLIST',
      allowed: 'names, with their undername where they have one, comma between',
      defaultText: '',
      default: [],
      read: (given) => {
        const value = given.split(',').map((part) => part.trim().toLowerCase())
        return value.every((part) => /^[a-z0-9_-]+$/.test(part)) ? { value } : { wrong: 'must be names' }
      },
      why: 'Names whose content is never limited.',
    }),
  ),
  trustedProxies: reloadable(
    custom<readonly string[]>({
      env: 'TRUSTED_PROXIES',
      allowed: `none, or ${rangesAllowed}`,
      defaultText: near,
      default: near.split(','),
      read: (given) => (given === 'none' ? { value: [] } : readRanges(given)),
      why: 'Whose X-Forwarded-For and X-Real-IP are believed. none: clients come straight to this program.',
    }),
  ),
  chunkPricedBytes: whole({
    env: 'CHUNK_GET_BASE64_SIZE_BYTES',
    default: 368_640,
    min: 1,
    max: 2 ** 30,
    why: 'What GET /chunk/{offset} is priced at before the chunk is found; what it has less is given back.',
  }),
}
