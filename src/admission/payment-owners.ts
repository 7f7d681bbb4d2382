import { createHash } from 'node:crypto'
import { isRefusal, type Refusal } from '../format/refusal.js'
import { isDiskError } from '../store/disk-error.js'
import { countDiskError } from '../store/disk-errors.js'
import { BucketsUnreachable } from './buckets.js'

/** Whether this seller may take a payment. `unreachable`: that cannot be decided now, so nothing may be settled. */
export type Ownership = 'ours' | 'other' | 'unreachable'

/**
 * Decides which of several sellers with one wallet takes a payment: the first that requests it, for good. A transfer on chain
 * does not say what it was for, and a facilitator may confirm one payment to two sellers. So the decision is made before
 * settlement is requested, or one payment could buy twice.
 */
export interface PaymentOwners {
  /**
   * Durable when it resolves. The same answer each time, until `untilMs` (since 1970): it must not be possible to settle the
   * payment after that. `beneficiary`: as in `PaymentOrder`. `owner`: the name under which it is owned (`Bound`); absent: the
   * present one.
   */
  own(payment: string, untilMs: number, beneficiary: string, owner?: string): Promise<Ownership>
}

/** What a payment for a bucket of a gateway buys, as one word. */
export function bucketPurposeOf(beneficiary: string): string {
  return createHash('sha256').update(`bucket ${beneficiary}`).digest('base64url')
}

/** What is recorded of a payment. `purpose`: what it may buy there; absent: anything. */
export interface PaymentOwner {
  readonly owner: string
  readonly purpose?: string
}

/** Records the owner of a payment where it has none; resolves with what is recorded. */
export type RecordOwner = (
  claim: PaymentOwner & { readonly payment: string; readonly untilMs: number },
) => Promise<PaymentOwner | Refusal>

/** The owners that the payment service with this wallet has recorded (`OwnedPayments`), here or in another program. */
export class RecordedOwners implements PaymentOwners {
  /**
   * `name`: of all that put what is paid in the same place; may reject with `BucketsUnreachable` or an error of the disk.
   * `purposeOf`: what a payment for this beneficiary buys; absent: payments are not bound to anything.
   */
  constructor(
    private readonly record: RecordOwner,
    private readonly name: () => Promise<string>,
    private readonly purposeOf: (beneficiary: string) => string | undefined = () => undefined,
  ) {}

  async own(payment: string, untilMs: number, beneficiary: string, bound?: string): Promise<Ownership> {
    const owner = bound ?? (await this.#name())
    if (owner === undefined) return 'unreachable'
    const purpose = this.purposeOf(beneficiary)
    const decision = await this.record({
      payment,
      owner,
      untilMs,
      ...(purpose === undefined ? {} : { purpose }),
    })
    if (!isRefusal(decision)) {
      const isFor = [undefined, purpose].includes(decision.purpose) || purpose === undefined
      return decision.owner === owner && isFor ? 'ours' : 'other'
    }
    // It sells nothing for USDC, so that nobody else can take the payment.
    return decision.refused === 'unknown' ? 'ours' : 'unreachable'
  }

  async #name(): Promise<string | undefined> {
    try {
      return await this.name()
    } catch (error) {
      if (error instanceof BucketsUnreachable) return undefined
      // It is made at the first payment, which a full disk refuses.
      if (!isDiskError(error)) throw error
      countDiskError(error)
      return undefined
    }
  }
}
