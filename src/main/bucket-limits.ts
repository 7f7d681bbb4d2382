import { join } from 'node:path'
import type { MessagePort } from 'node:worker_threads'
import type { Config } from '../../config/read.js'
import type { Part } from '../actor/supervise.js'
import type { Secret } from '../admission/bucket-key.js'
import { BucketTable } from '../admission/bucket-table.js'
import type { AdmissionThread, BucketPlace } from '../admission/open-buckets.js'
import type { RedisOptions } from '../admission/redis-buckets.js'
import { bucketRules, clientsOf } from '../threads/client-options.js'
import type { EdgeGiven, EdgePorts } from '../threads/edge-given.js'
import { folders } from '../threads/folders.js'

/** Where buckets are, made once; undefined where nobody is limited. */
function bucketPlace({ limits }: Config): BucketPlace | undefined {
  if (!limits.enabled) return undefined
  const { ip, resource } = bucketRules({ limits })
  const [ipTable, resourceTable] = [
    { ...ip, slots: limits.bucketsMax },
    { ...resource, slots: limits.bucketsMax },
  ]
  return {
    ip: ipTable,
    resource: resourceTable,
    ipMemory: new SharedArrayBuffer(BucketTable.bytes(ipTable)),
    resourceMemory: new SharedArrayBuffer(BucketTable.bytes(resourceTable)),
    ...(limits.type === 'redis' ? { redis: redisOptions({ limits }) } : {}),
  }
}

function redisOptions({ limits }: Pick<Config, 'limits'>): RedisOptions {
  const { redisEndpoint: endpoint, redisTls: tls, redisCluster: cluster } = limits
  const { redisFailure: failure, redisTimeoutMs: timeoutMs } = limits
  return { endpoint, tls, cluster, failure, timeoutMs }
}

/** What the thread of the keeper of buckets is started with. */
function admissionThread(config: Config, place: BucketPlace): AdmissionThread {
  return {
    place,
    clients: clientsOf(config),
    keeper: { path: join(folders(config).root, 'admission'), saveEveryMs: 1000 },
    logLevel: config.server.logLevel,
  }
}

/** The threads of the program, as far as limits need them. */
interface Threads {
  reported<Reported>(name: string): Reported
  line(name: string): MessagePort
  part(name: string, file: string, data: () => object): Part
}

/** The part that keeps the buckets, and how edge threads reach them; nothing of both where nobody is limited. */
export function limitsOf(
  config: Config,
  threads: Threads,
): {
  readonly parts: Part[]
  limits(): EdgeGiven['limits']
  ports(): Pick<EdgePorts, 'admission'>
} {
  const place = bucketPlace(config)
  if (place === undefined) return { parts: [], limits: () => undefined, ports: () => ({}) }
  return {
    parts: [threads.part('admission', 'admission', () => admissionThread(config, place))],
    limits: () => ({ place, secret: threads.reported<{ secret: Secret }>('admission').secret }),
    ports: () => ({ admission: threads.line('admission') }),
  }
}
