import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Meters } from '../actor/meter.js'
import { answeredMax, type GuardOptions, guarded } from './guarded-resolver.js'
import { JsonRpcRegistry } from './json-rpc-registry.js'
import { LocalNames } from './local-names.js'
import { LocalRegistry } from './local-registry.js'
import { NameCache, type NameCacheOptions } from './name-cache.js'
import { NameMeters } from './name-meters.js'
import type { Names, Resolver } from './names-port.js'
import type { RedisNames, RedisNamesOptions } from './redis-names.js'
import { remembered } from './remembered.js'
import { type TrustedGatewayOptions, TrustedNameGateway } from './trusted-gateway.js'

/** Options of an edge thread for the resolution of names. */
export interface NamesThread {
  /** Folder of the local registry. */
  readonly registryPath: string
  /** Resolvers in the order in which they are called; those without an address are skipped. */
  readonly order: readonly Resolver['label'][]
  readonly gateway?: Omit<TrustedGatewayOptions, 'connectionsMax'>
  readonly registryUrl?: string
  readonly timeoutMs: number
  /** Longest wait for the last of the order: no other is called after it. */
  readonly lastTimeoutMs: number
  readonly guard: Omit<GuardOptions, 'timeoutMs'>
  readonly cache: NameCacheOptions
  /** Where names are remembered beyond this process; absent: nowhere. */
  readonly memory?: RedisNamesOptions
}

export interface OpenNames {
  readonly names: Names
  /** Resolvers in use, in order: those of the operator's list that have an address. */
  readonly resolvers: readonly Resolver['label'][]
  /** The names of this machine for writing, opened with the first call. Absent: they are not in use. */
  readonly registry?: () => LocalRegistry
  close(): Promise<void>
}

/** Opens the resolvers and the memory in front of them, for one thread. */
export async function openNames(
  options: NamesThread,
  clock: Clock,
  meters: Meters,
  log: Log,
): Promise<OpenNames> {
  const closing: (() => Promise<void>)[] = []
  const opened = <Kind extends { close(): Promise<void> }>(one: Kind): Kind => {
    closing.push(() => one.close())
    return one
  }
  let local: LocalNames | undefined
  const plain = options.order.flatMap((label): Resolver[] => {
    if (label === 'local') {
      local = opened(new LocalNames(options.registryPath, clock))
      return [local]
    }
    if (label === 'gateway') {
      const { gateway } = options
      const connectionsMax = connectionsOf(options.cache)
      return gateway === undefined ? [] : [opened(new TrustedNameGateway({ ...gateway, connectionsMax }))]
    }
    const { registryUrl } = options
    return registryUrl === undefined ? [] : [opened(new JsonRpcRegistry(registryUrl, connectionsMax))]
  })
  const memory = options.memory && opened(await redisNames(options.memory, log))
  const resolvers = plain.map((resolver, index) => {
    if (!resolver.remote) return resolver
    const timeoutMs = index === plain.length - 1 ? options.lastTimeoutMs : options.timeoutMs
    const { label } = resolver
    const onBug = (err: unknown): void => log.error({ err, label }, 'a bug: a resolver of names threw')
    const patient = guarded(resolver, { ...options.guard, timeoutMs }, clock, onBug)
    return memory === undefined ? patient : remembered(patient, memory, options.cache, clock)
  })
  const cache = new NameCache(resolvers, local, options.cache, clock, new NameMeters(meters))
  let registry: LocalRegistry | undefined
  const opening = (): LocalRegistry => {
    registry ??= opened(new LocalRegistry(options.registryPath, clock.now))
    return registry
  }
  return {
    names: cache,
    resolvers: resolvers.map(({ label }) => label),
    ...(local === undefined ? {} : { registry: opening }),
    async close() {
      cache.close()
      await Promise.all(closing.map((close) => close()))
    },
  }
}

/** Loaded where there is a Redis: its client costs a thread 0.2 s. */
async function redisNames(options: RedisNamesOptions, log: Log): Promise<RedisNames> {
  const { RedisNames } = await import('./redis-names.js')
  return new RedisNames(options, log)
}

/**
 * Connections to a gateway that resolves names: one for each flight of the cache, for half as many flights of requests with a
 * trail, and for each name that the guard tries. Fewer would be a line without turns behind the shares of flights
 * (`FreeShares`): a client may have half of them, with names that the gateway is slow about.
 */
function connectionsOf({ flightsMax }: Pick<NameCacheOptions, 'flightsMax'>): number {
  return flightsMax + Math.ceil(flightsMax / 2) + answeredMax
}

/** Questions to one registry at once. It knows all names alike, and is slow about none that a stranger chooses. */
const connectionsMax = 16
