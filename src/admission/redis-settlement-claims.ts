import { parsedJson } from '../format/json.js'
import { BucketsUnreachable } from './buckets.js'
import type { PaymentOrder } from './cashier-messages.js'
import type { BucketCommands } from './redis-scripts.js'
import type { Bound, ClaimOptions, PaymentClaim, SettlementClaims } from './settlement-claims.js'

/** A payment can be settled for a day after it was signed, and its record is kept for a week. */
const keptSeconds = 8 * 86_400

export interface ClaimsRedis {
  readonly commands: Pick<BucketCommands, 'paymentBind' | 'paymentClear' | 'paymentLook' | 'paymentHouse'>
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

const transactionShape = /^0x[0-9a-f]{64}$/i
/** Beneficiaries are addresses or names of resources, or digests of them. */
const bucketMaxLength = 512

/** What a mark states, checked as what a stranger sends: others may write to this Redis. */
function readMark(text: string): Pick<Partial<CreditMark>, 'bucket' | 'transaction'> {
  const stated = parsedJson(text)
  if (typeof stated !== 'object' || stated === null) return {}
  const { bucket, transaction } = stated as Readonly<Record<string, unknown>>
  return {
    ...(typeof bucket === 'string' && bucket !== '' && bucket.length <= bucketMaxLength ? { bucket } : {}),
    ...(typeof transaction === 'string' && transactionShape.test(transaction) ? { transaction } : {}),
  }
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
    const { bound, requested } = keysOf(payment)
    const about = [beneficiary, this.#proposed(), keptSeconds, this.options.self]
    const [first, owner, name] = await this.#run(() =>
      commands.paymentBind(bound, commonNameKey, requested, ...about),
    )
    this.#noted(name)
    return { beneficiary: first, owner }
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
