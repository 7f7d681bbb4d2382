import { custom, flag, maybeText, readRedis, secret, whole } from './setting.js'

/** Several machines that share lists and free bytes. */
export const cluster = {
  databaseUrl: secret(
    maybeText({
      env: 'CLUSTER_DATABASE_URL',
      allowed: 'a postgres:// address',
      shape: /^postgres(?:ql)?:\/\/\S+$/,
      why:
        'PostgreSQL that several machines share: block list, names, free bytes, heartbeats. May be that of ' +
        'PAYMENT_DATABASE_URL. Unset: this machine is alone.',
    }),
  ),
  redisUrl: secret(
    custom<string | undefined>({
      env: 'CLUSTER_REDIS_URL',
      allowed: 'host:port or a redis:// or rediss:// address',
      defaultText: '',
      default: undefined,
      read: readRedis,
      why: 'Redis that tells machines of changes at once. Unset: they look every 3 seconds.',
    }),
  ),
  takeoverSeconds: whole({
    env: 'CLUSTER_TAKEOVER_SECONDS',
    default: 600,
    min: 0,
    max: 86_400,
    why:
      'A machine that was not seen for so long is gone: another one takes over the accepted uploads that it left in ' +
      'the bucket. 0: never.',
  }),
  isNodeShown: flag({
    env: 'CLUSTER_NODE_HEADER',
    default: false,
    why: 'Each answer of all services has a header with the name of its machine (CLUSTER_NODE): X-GATEWAY-Node.',
  }),
}

/** What does not fit. */
export function clusterFaults({
  databaseUrl,
  redisUrl,
}: {
  readonly databaseUrl: string | undefined
  readonly redisUrl: string | undefined
}): string[] {
  return redisUrl !== undefined && databaseUrl === undefined
    ? ['CLUSTER_REDIS_URL needs CLUSTER_DATABASE_URL: news alone share nothing']
    : []
}
