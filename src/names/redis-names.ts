import { Redis } from 'ioredis'
import type { Log } from '../actor/log.js'
import { expected } from '../format/bug.js'
import { readRecord } from './name-record.js'
import type { Name, Resolver } from './names-port.js'
import type { NameMemory, Recalled } from './remembered.js'

export interface RedisNamesOptions {
  /** redis:// or rediss:// address. */
  readonly url: string
  readonly tls: boolean
  /** Timeout of a call; short, because resolvers can be called instead. */
  readonly timeoutMs: number
  /** How long a record is kept. */
  readonly keptMs: number
}

const reconnectMaxMs = 2000

/** Names in Redis, shared by every gateway that uses it. While Redis is slow or unreachable, it is treated as empty. */
export class RedisNames implements NameMemory {
  readonly #redis: Redis
  #isLogged = false

  constructor(
    private readonly options: RedisNamesOptions,
    private readonly log: Pick<Log, 'warn' | 'info'>,
  ) {
    this.#redis = new Redis(options.url, {
      ...(options.tls ? { tls: {} } : {}),
      commandTimeout: options.timeoutMs,
      maxRetriesPerRequest: 0,
      enableOfflineQueue: false,
      retryStrategy: (times) => Math.min(times * 100, reconnectMaxMs),
    })
    this.#redis.on('error', (error: Error) => this.#failed(error))
    this.#redis.on('ready', () => {
      if (this.#isLogged) log.info('Redis (names) answers again')
      this.#isLogged = false
    })
  }

  async recall(resolver: Resolver['label'], name: Name): Promise<Recalled | undefined> {
    if (this.#redis.status !== 'ready') return undefined
    try {
      const text = await this.#redis.get(keyOf(resolver, name))
      return text === null ? undefined : readRecalled(text)
    } catch (error) {
      this.#failed(expected(error))
      return undefined
    }
  }

  keep(resolver: Resolver['label'], name: Name, recalled: Recalled): void {
    if (this.#redis.status !== 'ready' || this.options.keptMs < 1) return
    this.#redis
      .set(keyOf(resolver, name), JSON.stringify(recalled), 'PX', this.options.keptMs)
      .catch((error: Error) => this.#failed(error))
  }

  async close(): Promise<void> {
    this.#redis.disconnect()
  }

  /** Logged once until calls succeed again. */
  #failed(error: Error): void {
    if (this.#isLogged) return
    this.#isLogged = true
    this.log.warn({ reason: error.message }, 'Redis (names) does not answer: resolvers are used instead')
  }
}

function keyOf(resolver: Resolver['label'], { full }: Name): string {
  return `sluice{names}:${resolver}:${full}`
}

/** Written by another process, so it is checked as strictly as data from the network. */
function readRecalled(text: string): Recalled | undefined {
  try {
    const { record, resolvedAtMs } = (JSON.parse(text) ?? {}) as Record<string, unknown>
    const read = typeof record === 'object' && record !== null ? readRecord(record) : undefined
    return read !== undefined && Number.isSafeInteger(resolvedAtMs)
      ? { record: read, resolvedAtMs: Number(resolvedAtMs) }
      : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
