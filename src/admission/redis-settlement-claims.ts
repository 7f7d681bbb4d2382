import { BucketsUnreachable } from './buckets.js'
import type { PaymentOrder } from './cashier-messages.js'
import type { BucketCommands } from './redis-scripts.js'
import type { Bound, ClaimOptions, PaymentClaim, SettlementClaims } from './settlement-claims.js'

/** A payment can be settled for a day after it was signed, and its record is kept for a week. */
const keptSeconds = 8 * 86_400

export interface ClaimsRedis {
  readonly commands: Pick<
    BucketCommands,
    'paymentAsk' | 'paymentBind' | 'paymentClear' | 'paymentLook' | 'paymentHouse'
  >
  /** Keys of a payment: the gateways that requested its settlement, what it is bound to, the mark that it is credited. */
  keysOf(payment: string): { readonly requested: string; readonly bound: string; readonly paid: string }
  /** Key of the name of all gateways that use this Redis. */
  readonly commonNameKey: string
  /** Waits a bounded time; undefined: Redis did not answer. */
  wait<T>(run: () => Promise<T>): Promise<T | undefined>
}

/** What the mark of a credited payment states. Those of older releases state only the tokens, as a number. */
interface CreditMark {
  readonly bucket: string
  readonly tokens: number
  readonly transaction?: string | undefined
}

/** A mark as its text in Redis (JSON). */
export function markText(mark: CreditMark): string {
  return JSON.stringify(mark)
}

function readMark(text: string): Partial<CreditMark> {
  return text.startsWith('{') ? (JSON.parse(text) as CreditMark) : {}
}

/** Claims on settlements, in the Redis that holds the buckets. */
export class RedisSettlementClaims implements SettlementClaims {
  constructor(
    private readonly redis: ClaimsRedis,
    private readonly options: ClaimOptions,
  ) {}

  async commonName(): Promise<string> {
    const { commands, commonNameKey } = this.redis
    return this.#noted(await this.#run(() => commands.paymentHouse(commonNameKey, this.#proposed())))
  }

  async bind({ payment, beneficiary }: Pick<PaymentOrder, 'payment' | 'beneficiary'>): Promise<Bound> {
    const { commands, commonNameKey, keysOf } = this.redis
    const { bound } = keysOf(payment)
    const [first, owner, name] = await this.#run(() =>
      commands.paymentBind(bound, commonNameKey, beneficiary, this.#proposed(), keptSeconds),
    )
    this.#noted(name)
    return { beneficiary: first, owner }
  }

  async claim({ payment }: Pick<PaymentOrder, 'payment'>): Promise<void> {
    const { requested } = this.redis.keysOf(payment)
    await this.#run(() => this.redis.commands.paymentAsk(requested, this.options.self, keptSeconds))
  }

  async clear(payment: string): Promise<void> {
    const { requested, bound } = this.redis.keysOf(payment)
    await this.#run(() => this.redis.commands.paymentClear(requested, bound, this.options.self))
  }

  async look(payment: string): Promise<PaymentClaim> {
    const { requested, bound, paid } = this.redis.keysOf(payment)
    const { self, leftMs } = this.options
    const [youngestMs, mark, beneficiary, owner] = await this.#run(() =>
      this.redis.commands.paymentLook(requested, bound, paid, self, keptSeconds),
    )
    const ofOwner = owner === '' ? {} : { owner }
    const whose = beneficiary === '' ? {} : { beneficiary, ...ofOwner }
    if (youngestMs === -2) {
      const { bucket, transaction } = readMark(mark)
      const credited = bucket === undefined ? whose : { beneficiary: bucket, ...ofOwner }
      return { state: 'credited', ...credited, ...(transaction === undefined ? {} : { transaction }) }
    }
    if (youngestMs < 0) return { state: 'nobody' }
    return { state: youngestMs < leftMs ? 'pending' : 'left', ...whose }
  }

  #proposed(): string {
    return this.options.kept?.find() ?? this.options.self
  }

  #noted(name: string): string {
    const { kept } = this.options
    if (kept !== undefined && kept.find() !== name) kept.keep(name)
    return name
  }

  async #run<T>(run: () => Promise<T>): Promise<T> {
    const reply = await this.redis.wait(run)
    if (reply === undefined) throw new BucketsUnreachable('Redis did not answer')
    return reply
  }
}
