import { createHash } from 'node:crypto'
import { Cluster, Redis } from 'ioredis'
import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { countHeld, heldBy } from '../actor/party-counts.js'
import type { SettledPayment } from './admission-port.js'
import { BoundedCalls } from './bounded-calls.js'
import type { Balance } from './bucket-table.js'
import {
  type BucketKind,
  type BucketRules,
  type Buckets,
  BucketsUnreachable,
  type Named,
  readResourceName,
  resourceName,
  type TakenFrom,
  type Taking,
  Ticket,
} from './buckets.js'
import type { Client, Clients } from './clients.js'
import type { LocalBuckets } from './local-buckets.js'
import { type BucketCommands, bucketScripts } from './redis-scripts.js'
import { type ClaimsRedis, markText, RedisSettlementClaims } from './redis-settlement-claims.js'
import type { ClaimOptions, SettlementClaims } from './settlement-claims.js'

export interface RedisOptions {
  readonly endpoint: string
  readonly tls: boolean
  readonly cluster: boolean
  /** While Redis is slow or gone: each program limits by buckets of its own, everybody is served, or nobody is. */
  readonly failure: 'local' | 'open' | 'closed'
  readonly timeoutMs: number
}

export interface RedisParts {
  readonly redis: RedisOptions
  readonly ip: BucketRules
  readonly resource: BucketRules
  /** Counts while Redis does not answer, where its failure is `local`. */
  readonly local: LocalBuckets
  readonly clients: Clients
  readonly clock: Clock
  readonly log: Pick<Log, 'warn' | 'info'>
}

/** The tag in braces puts all keys into one slot of a cluster: one script can use two keys only then. */
const tag = 'sluice{limits}'
/** As long as payments are remembered on disk. */
const markSeconds = 366 * 86_400
/** Longer than for takes, because a credit was paid for. */
const creditTimeoutMs = 5000
/** A client that Redis may know as one that paid tries again in so long. */
const backSeconds = 5
const reconnectMaxMs = 2000
/** Takes of one client under way. No client may use up the calls of all: while they are used up, Redis counts nothing. */
const takesOfClientMax = 512

type Client2 = (Redis | Cluster) & BucketCommands

/** Buckets in Redis, shared by every gateway that uses it: one script a take. Bounded waiting, then as `failure` has it. */
export class RedisBuckets implements Buckets {
  #rules: Readonly<Record<BucketKind, BucketRules>>
  readonly #redis: Client2
  readonly #calls: BoundedCalls
  /** Takes under way, by address of the client. */
  readonly #takes = new Map<string, number>()

  constructor(private readonly parts: RedisParts) {
    const { redis, clock, log } = parts
    this.#rules = { ip: parts.ip, resource: parts.resource }
    this.#redis = connect(redis)
    this.#calls = new BoundedCalls({ timeoutMs: redis.timeoutMs, callsMax: 16_384, restMs: 1000, clock, log })
    // Every failed call is reported by itself; without a listener the library would end the process.
    this.#redis.on('error', (error: Error) => this.#calls.noteReason(error))
  }

  get rules(): Readonly<Record<BucketKind, BucketRules>> {
    return this.#rules
  }

  /** Each script gets the rules, so the next one goes by these. */
  use(rules: Readonly<Record<BucketKind, BucketRules>>): void {
    this.#rules = rules
  }

  async take(client: Client, named: Named, tokens: number, from: TakenFrom): Promise<Taking> {
    const { address } = client
    if (heldBy(this.#takes, address) >= takesOfClientMax)
      return { short: 'ip', retrySeconds: 1, isPaidUnknown: true }
    countHeld(this.#takes, address, 1)
    try {
      return await this.#take(client, named, tokens, from)
    } finally {
      countHeld(this.#takes, address, -1)
    }
  }

  async #take(client: Client, named: Named, tokens: number, from: TakenFrom): Promise<Taking> {
    const { ip, resource } = this.#rules
    const keys = [ipKey(client.address), resourceKey(named)] as const
    const run = (): Promise<number[]> =>
      this.#redis.bucketTake(...keys, tokens, from === 'both' ? 0 : 1, ...both(ip, resource))
    const ticketOf = (found: readonly number[]): RedisTicket => {
      const [, regular = 0, paid = 0, resourceRegular = 0, resourcePaid = 0] = found
      const giveBack = (counts: readonly number[]): void => this.#give(keys, counts)
      return new RedisTicket(
        regular + paid,
        paid,
        resourcePaid,
        resourceRegular + resourcePaid === 0,
        giveBack,
      )
    }
    const tooLate = (found: readonly number[]): void => {
      // The reply came after the answer was decided without it, so the tokens are given back.
      if (found[0] === 1) ticketOf(found).give(tokens)
    }
    const timeoutMs = from === 'payer' ? creditTimeoutMs : undefined
    const found = await this.#calls.wait(this.#isUp, run, tooLate, timeoutMs)
    if (found === undefined) return this.#takeWithout(client, named, tokens, from)
    if (found[0] === 1) return ticketOf(found)
    const [, short, seconds = -1] = found
    return { short: short === 1 ? 'ip' : 'resource', retrySeconds: seconds < 0 ? undefined : seconds }
  }

  /** Redis did not answer. */
  #takeWithout(client: Client, named: Named, tokens: number, from: TakenFrom): Taking {
    const { redis, local } = this.parts
    if (redis.failure === 'closed') return { unavailable: true }
    if (redis.failure === 'open') return new OpenTicket(0, 0)
    const taken = local.take(client, named, tokens, from)
    if (taken instanceof Ticket) return taken
    const retrySeconds = Math.min(taken.retrySeconds ?? backSeconds, backSeconds)
    return { ...taken, retrySeconds, isPaidUnknown: true }
  }

  async credit(
    bucket: string,
    payment: string,
    tokens: number,
    settled?: Pick<SettledPayment, 'transaction'>,
  ): Promise<'credited' | 'known'> {
    const { clients } = this.parts
    const { ip, resource } = this.#rules
    const named = readResourceName(bucket)
    const client = clients.at(bucket)
    if (named === undefined && client === undefined) throw new Error('there is no such bucket')
    const key = named === undefined ? ipKey(client?.address ?? '') : resourceKey(named)
    const rate = (named === undefined ? ip : resource).refillPerSecond
    const mark = paidKey(payment)
    const text = markText({ bucket, tokens, transaction: settled?.transaction })
    const run = (): Promise<number> => this.#redis.bucketCredit(mark, key, tokens, rate, markSeconds, text)
    const added = await this.#calls.wait(this.#isUp, run, undefined, creditTimeoutMs)
    if (added === undefined) throw new BucketsUnreachable('Redis did not answer')
    return added === 1 ? 'credited' : 'known'
  }

  /** The claims of the gateways that use this Redis. */
  claims(options: ClaimOptions): SettlementClaims {
    const keysOf: ClaimsRedis['keysOf'] = (payment) => ({
      requested: `${tag}:asked:${digest(payment)}`,
      bound: `${tag}:bound:${digest(payment)}`,
      paid: paidKey(payment),
    })
    const wait = <T>(run: () => Promise<T>): Promise<T | undefined> =>
      this.#calls.wait(this.#isUp, run, undefined, creditTimeoutMs)
    return new RedisSettlementClaims(
      { commands: this.#redis, keysOf, commonNameKey: `${tag}:house`, wait },
      options,
    )
  }

  async ofClient(client: Client): Promise<Balance | undefined> {
    return this.#look(ipKey(client.address), this.#rules.ip)
  }

  async ofResource(named: Named): Promise<Balance | undefined> {
    return this.#look(resourceKey(named), this.#rules.resource)
  }

  async close(): Promise<void> {
    this.#redis.disconnect()
  }

  readonly #isUp = (): boolean => this.#redis.status === 'ready'

  async #look(key: string, { capacity, refillPerSecond }: BucketRules): Promise<Balance | undefined> {
    const run = (): Promise<number[]> => this.#redis.bucketLook(key, capacity, refillPerSecond)
    const found = await this.#calls.wait(this.#isUp, run)
    if (found === undefined) throw new BucketsUnreachable('Redis did not answer')
    const [tokens, paidTokens] = found
    return tokens === undefined || paidTokens === undefined ? undefined : { tokens, paidTokens }
  }

  /**
   * Sent even while other calls are paused, because nobody waits for it. Not retried: giving back twice would create
   * tokens.
   */
  #give(keys: readonly [string, string], counts: readonly number[]): void {
    const { ip, resource } = this.#rules
    const rates = [ip.refillPerSecond, resource.refillPerSecond]
    const given = this.#redis.bucketGive(...keys, ...counts, ...rates)
    void given.catch((error: Error) => this.#calls.noteReason(error))
  }
}

/** Let through because Redis did not answer. */
class OpenTicket extends Ticket {
  give(): void {
    // Nothing was taken.
  }
}

class RedisTicket extends Ticket {
  constructor(
    tokens: number,
    paid: number,
    resourcePaid: number,
    private readonly alone: boolean,
    private readonly giveBack: (counts: readonly number[]) => void,
  ) {
    super(tokens, paid, alone ? 0 : tokens, resourcePaid)
  }

  give(tokens: number): void {
    const paid = Math.min(tokens, this.paid)
    const back = Math.min(tokens, this.resourcePaid)
    this.paid -= paid
    this.resourcePaid -= back
    this.giveBack([tokens - paid, paid, this.alone ? 0 : tokens - back, back])
  }
}

function connect({ endpoint, tls, cluster, timeoutMs }: RedisOptions): Client2 {
  const url = new URL(endpoint)
  const port = url.port === '' ? 6379 : Number(url.port)
  const password = url.password === '' ? {} : { password: decodeURIComponent(url.password) }
  const username = url.username === '' ? {} : { username: decodeURIComponent(url.username) }
  const secure = tls || url.protocol === 'rediss:' ? { tls: { servername: url.hostname } } : {}
  const options = {
    ...password,
    ...username,
    ...secure,
    connectTimeout: Math.max(timeoutMs, 1000),
    // A command is never sent twice, and none waits for a connection: callers decide about retries and waiting.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
  }
  const pause = (times: number): number => Math.min(50 * 2 ** Math.min(times, 10), reconnectMaxMs)
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (cluster) {
    const more = { enableOfflineQueue: false, scripts: bucketScripts, clusterRetryStrategy: pause }
    return new Cluster([{ host, port }], { ...more, redisOptions: options }) as Client2
  }
  const db = Number(url.pathname.slice(1)) || 0
  return new Redis({ ...options, host, port, db, scripts: bucketScripts, retryStrategy: pause }) as Client2
}

function both(ip: BucketRules, resource: BucketRules): readonly number[] {
  return [ip.capacity, ip.refillPerSecond, resource.capacity, resource.refillPerSecond]
}

function ipKey(address: string): string {
  return `${tag}:ip:${address}`
}

function paidKey(payment: string): string {
  return `${tag}:paid:${digest(payment)}`
}

function resourceKey(named: Named): string {
  const name = resourceName(named)
  return `${tag}:resource:${name.length <= 128 ? name : digest(name)}`
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}
