import { BoundedMap } from '../actor/bounded-map.js'
import type { Clock } from '../actor/clock.js'
import type { CashierReply, PaymentOrder } from './cashier-messages.js'
import type { Facilitator } from './facilitator.js'
import { isOfContract, type Lanes } from './lanes.js'
import { LeakingCounts } from './leaking-counts.js'

/** Payments that would settle are remembered for the time in which a small body comes, and looked at again after it. */
const [rememberedMax, rememberedMs] = [4096, 10_000]
/** Payments of one payer that would settle, and are not made: so many in a burst, and as many a second are forgotten. */
const unmade = { leakPerSecond: 1, max: 64 }

/**
 * Has the facilitator verify whether payments would settle, before the bodies come that they are for. Such a payment need never
 * be made, and signing one costs nothing: so each is requested once, each payer has some at a time, and all have turns.
 */
export class PaymentLooks {
  /** Payments that would settle, and until when that is good, of the monotonic clock. */
  readonly #good = new BoundedMap<string, number>(rememberedMax)
  readonly #open = new Map<string, Promise<CashierReply>>()
  readonly #unmade: LeakingCounts

  constructor(
    private readonly facilitator: Pick<Facilitator, 'verify'>,
    private readonly lanes: Lanes,
    private readonly clock: Clock,
  ) {
    this.#unmade = new LeakingCounts(clock, unmade)
  }

  /** `good`: it would settle now, or would have some seconds ago. `busy`, `down`: nobody got a request, or did not answer. */
  async verdict(order: PaymentOrder): Promise<CashierReply> {
    const name = nameOf(order)
    if ((this.#good.get(name) ?? Number.NEGATIVE_INFINITY) > this.clock.monotonic()) return { state: 'good' }
    const open = this.#open.get(name)
    if (open !== undefined) return open
    const asking = this.#ask(order).finally(() => this.#open.delete(name))
    this.#open.set(name, asking)
    return asking
  }

  /** A payment was made: its look was worth it. */
  made(order: PaymentOrder): void {
    if (this.#good.delete(nameOf(order))) this.#forgive(order)
  }

  async #ask(order: PaymentOrder): Promise<CashierReply> {
    // Of a contract's wallet nobody knows yet whether it has signed: others must not use up what is its.
    const isSigned = !isOfContract(order)
    if (isSigned && this.#unmade.of(order.payer) > unmade.max - 1) return { state: 'busy' }
    if ((await this.lanes.turn(order)) !== undefined) return { state: 'busy' }
    if (isSigned) this.#unmade.add(order.payer)
    const leave = this.lanes.take(order)
    if (typeof leave === 'string') {
      this.#forgive(order)
      return { state: leave === 'client' ? 'busy' : 'down' }
    }
    const answer = await this.facilitator.verify(order.message, order.payer).finally(leave)
    if (answer.verdict === 'valid') {
      this.#good.set(nameOf(order), this.clock.monotonic() + rememberedMs)
      return { state: 'good' }
    }
    if (answer.verdict === 'nothing') {
      this.#forgive(order)
      return { state: 'down' }
    }
    this.lanes.blame(order)
    // A payment that was settled elsewhere stands on the chain with its signature: who brings it again may be anybody.
    if (isSigned) this.#unmade.less(order.payer)
    return { state: 'refused', stage: 'verify', reason: answer.reason }
  }

  #forgive(order: PaymentOrder): void {
    this.lanes.worth(order)
    if (!isOfContract(order)) this.#unmade.less(order.payer)
  }
}

/** All that the verdict depends on. */
function nameOf({ digest, signature, units }: PaymentOrder): string {
  return `${digest} ${signature} ${units}`
}
