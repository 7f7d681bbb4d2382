import { BucketsUnreachable } from './buckets.js'
import type { PaymentOrder } from './cashier-messages.js'
import type { BucketCommands } from './redis-scripts.js'
import type { ClaimState, SettlementClaims } from './settlement-claims.js'

export interface RedisSettlementClaimsOptions {
  /** What this gateway is called among them; the same after a restart. */
  readonly self: string
  /** Longer than one attempt to settle takes: a claim that is older was left by a gateway that died. */
  readonly leftMs: number
}

/** A payment can be settled for a day after it was signed, and its record is kept for a week. */
const keptSeconds = 8 * 86_400

export interface ClaimsRedis {
  readonly commands: Pick<BucketCommands, 'paymentAsk' | 'paymentClear' | 'paymentLook' | 'paymentHouse'>
  /** Keys of a payment: the gateways that requested its settlement, and the mark that its tokens are in a bucket. */
  keysOf(payment: string): { readonly requested: string; readonly paid: string }
  /** Key of the name of all gateways that use this Redis. */
  readonly commonNameKey: string
  /** Waits a bounded time; undefined: Redis did not answer. */
  wait<T>(run: () => Promise<T>): Promise<T | undefined>
}

/** Claims on settlements, in the Redis that holds the buckets. */
export class RedisSettlementClaims implements SettlementClaims {
  #commonName: string | undefined

  constructor(
    private readonly redis: ClaimsRedis,
    private readonly options: RedisSettlementClaimsOptions,
  ) {}

  async commonName(): Promise<string> {
    const { commands, commonNameKey } = this.redis
    this.#commonName ??= await this.#run(() => commands.paymentHouse(commonNameKey, this.options.self))
    return this.#commonName
  }

  async claim({ payment }: Pick<PaymentOrder, 'payment'>): Promise<void> {
    const { requested } = this.redis.keysOf(payment)
    await this.#run(() => this.redis.commands.paymentAsk(requested, this.options.self, keptSeconds))
  }

  async clear(payment: string): Promise<void> {
    const { requested } = this.redis.keysOf(payment)
    await this.#run(() => this.redis.commands.paymentClear(requested, this.options.self))
  }

  async look(payment: string): Promise<ClaimState> {
    const { requested, paid } = this.redis.keysOf(payment)
    const { self, leftMs } = this.options
    const youngestMs = await this.#run(() => this.redis.commands.paymentLook(requested, paid, self))
    if (youngestMs === -2) return 'credited'
    if (youngestMs < 0) return 'nobody'
    return youngestMs < leftMs ? 'pending' : 'left'
  }

  async #run<T>(run: () => Promise<T>): Promise<T> {
    const reply = await this.redis.wait(run)
    if (reply === undefined) throw new BucketsUnreachable('Redis did not answer')
    return reply
  }
}
