import type { MessagePort } from 'node:worker_threads'
import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { addressOf } from '../actor/mailbox-address.js'
import type { KeeperOptions } from './bucket-keeper.js'
import type { Secret } from './bucket-key.js'
import type { KeeperReply, KeeperRequest } from './bucket-messages.js'
import { BucketTable, type TableOptions } from './bucket-table.js'
import type { Buckets } from './buckets.js'
import { type ClientOptions, Clients } from './clients.js'
import { LocalBuckets } from './local-buckets.js'
import { MemoryBuckets } from './memory-buckets.js'
import type { RedisOptions } from './redis-buckets.js'

/** Where buckets are, for every thread that takes from them. Plain: it is cloned into threads. */
export interface BucketPlace {
  readonly ip: TableOptions
  readonly resource: TableOptions
  /** Memory of the two tables. */
  readonly ipMemory: SharedArrayBuffer
  readonly resourceMemory: SharedArrayBuffer
  /** The buckets are in Redis, and the tables count only while it does not answer. Absent: the tables are the buckets. */
  readonly redis?: RedisOptions
}

/** Which buckets a thread takes from, and for whom. */
export interface BucketOptions {
  readonly place: BucketPlace
  readonly clients: ClientOptions
  /** Sent by the keeper of buckets when it is up. */
  readonly secret: Secret
}

/**
 * What `workers/admission.ts` is started with. Says `{secret}` when the buckets of the disk are in memory; answers
 * `KeeperRequest` with `KeeperReply` on every port that `{connect: port}` brings. Where the buckets are in Redis, it only
 * refills the tables that count while Redis does not answer.
 */
export interface AdmissionThread {
  readonly place: BucketPlace
  readonly clients: ClientOptions
  readonly keeper: KeeperOptions
  readonly logLevel: string
}

/** The buckets and clients of one edge thread. `port` leads to the keeper; `mailboxMax` bounds what is under way to it. */
export async function openBuckets(
  { place, clients: about, secret }: BucketOptions,
  line: { readonly port: MessagePort; readonly mailboxMax: number },
  clock: Clock,
  log: Log,
): Promise<{ clients: Clients; buckets: Buckets; close(): Promise<void> }> {
  const clients = new Clients(about, secret)
  const ip = new BucketTable(place.ipMemory, place.ip)
  const resource = new BucketTable(place.resourceMemory, place.resource)
  if (place.redis !== undefined) {
    // Loaded where there is a Redis: its client costs a thread 0.2 s.
    const { RedisBuckets } = await import('./redis-buckets.js')
    const local = new LocalBuckets({ ip, resource, secret })
    const buckets = new RedisBuckets({
      redis: place.redis,
      ip: place.ip,
      resource: place.resource,
      local,
      clients,
      clock,
      log,
    })
    return { clients, buckets, close: () => buckets.close() }
  }
  const keeper = addressOf<KeeperRequest, KeeperReply>(line.port, line.mailboxMax)
  const buckets = new MemoryBuckets({ ip, resource, clients, secret, keeper })
  return { clients, buckets, close: () => Promise.resolve() }
}
