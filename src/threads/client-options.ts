import type { BucketKind, BucketRules } from '../admission/buckets.js'
import type { ClientOptions } from '../admission/clients.js'
import type { ServeOptions } from '../http/listen.js'
import type { Settings } from './thread-settings.js'

/** How clients are distinguished. */
export function clientsOf({ limits }: Settings<'limits'>): ClientOptions {
  const { trustedProxies, exempt, ipv6PrefixBits } = limits
  return { trustedProxies, exempt, ipv6PrefixBits }
}

/** Sizes of buckets, and how fast they are refilled. */
export function bucketRules({ limits }: Settings<'limits'>): Readonly<Record<BucketKind, BucketRules>> {
  return {
    ip: { capacity: limits.ipTokens, refillPerSecond: limits.ipRefill },
    resource: { capacity: limits.resourceTokens, refillPerSecond: limits.resourceRefill },
  }
}

/** Options of every listener about slow clients and about many of them. */
export function paceOf({
  server: { stallMs, bodyBytesPerSecondMin, requestsMax },
}: Settings<'server'>): Required<Pick<ServeOptions, 'stallMs' | 'bodyBytesPerSecondMin' | 'requestsMax'>> {
  return { stallMs, bodyBytesPerSecondMin, requestsMax }
}
