import type { Clock } from '../actor/clock.js'
import { plainSignatureBytes } from './authorization.js'
import { LeakingCounts } from './leaking-counts.js'
import type { LaneOptions, PaymentOrder } from './settlement-protocol.js'

/** Payments that came to nothing which a client may bring at once; one a second is forgotten. Honest clients have few. */
const faultsMax = 20

/** Why there is no place: `client` has used up its own share, or all are taken. */
export type Full = 'client' | 'all'

/** One kind of payments: places for so many at once, a share of them for each client, and what each brought in vain. */
class Lane {
  readonly #held = new Map<string, number>()
  readonly #faults: LeakingCounts
  #all = 0

  constructor(
    private readonly max: number,
    private readonly eachMax: number,
    clock: Clock,
  ) {
    this.#faults = new LeakingCounts(clock, { leakPerSecond: 1, max: faultsMax })
  }

  isShut(client: string): boolean {
    return this.#faults.of(client) > faultsMax - 1
  }

  blame(client: string): void {
    this.#faults.add(client)
  }

  /** A place, to be given back by a call; or why there is none. */
  take(client: string): (() => void) | Full {
    const held = this.#held.get(client) ?? 0
    if (held >= this.eachMax || this.isShut(client)) return 'client'
    if (this.#all >= this.max) return 'all'
    this.#held.set(client, held + 1)
    this.#all += 1
    return () => {
      const left = (this.#held.get(client) ?? 1) - 1
      if (left === 0) this.#held.delete(client)
      else this.#held.set(client, left)
      this.#all -= 1
    }
  }
}

/**
 * Places for payments under way. Signatures of plain keys are checked here, before a place is taken; those of contracts' wallets
 * (ERC-1271, ERC-6492) cannot be, so that they have a lane of their own: a flood of made-up ones leaves the others alone.
 */
export class Lanes {
  readonly #plain: Lane
  readonly #contracts: Lane

  constructor(options: LaneOptions, clock: Clock) {
    this.#plain = new Lane(options.settlementsMax, options.settlementsEachMax, clock)
    this.#contracts = new Lane(options.contractsMax, options.contractsEachMax, clock)
  }

  /** True: this client brought too many payments lately that came to nothing. */
  isShut(order: PaymentOrder): boolean {
    return this.#of(order).isShut(order.asker)
  }

  /** A payment came to nothing, by its own fault. */
  blame(order: PaymentOrder): void {
    this.#of(order).blame(order.asker)
  }

  /** A place for a payment that is to be settled, given back by a call; or why there is none. */
  take(order: PaymentOrder): (() => void) | Full {
    return this.#of(order).take(order.asker)
  }

  #of(order: PaymentOrder): Lane {
    return isOfContract(order) ? this.#contracts : this.#plain
  }
}

/** Longer signatures than those of plain keys are of contracts' wallets: only the chain can tell, and the facilitator asks it. */
export function isOfContract({ signature }: Pick<PaymentOrder, 'signature'>): boolean {
  return signature.length > 2 + 2 * plainSignatureBytes
}
