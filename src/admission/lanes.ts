import type { Clock } from '../actor/clock.js'
import type { Full } from '../actor/fair-line.js'
import { FreeShares, type ReleaseShare } from '../actor/free-shares.js'
import { countHeld, heldBy } from '../actor/party-counts.js'
import type { Refusal } from '../format/refusal.js'
import { plainSignatureBytes } from './authorization.js'
import type { LaneOptions, PaymentOrder } from './cashier-messages.js'
import { LeakingCounts } from './leaking-counts.js'
import { type OutwardOptions, OutwardTurns } from './outward-turns.js'

/** Failed payments that a client may bring in a burst; the count shrinks by one a second. Usual clients have few. */
const faultsMax = 20

/**
 * Questions to the facilitator about payments that may come to nothing, which has a limit for all requests: settlements
 * are not counted among them. The last number is for an address range of a busy client, whose payers are counted by themselves.
 */
const verifyTurns = { perSecond: 20, burst: 64, eachPerMinute: 600 }
/** Turns of payments by wallets of contracts. */
const contractTurns = { perSecond: 5, burst: 32, eachPerMinute: 600 }

/** Payments that wait for the chain, because the facilitator's answer says too little: in all, of one client, of one payer. */
const doubtsMax = 1024
const doubtsEachMax = 64
const doubtsOfPayerMax = 8

/**
 * One kind of payments: turns to be verified, slots for so many at once, shared by clients and networks, and the failed payments
 * of each client.
 */
class Lane {
  readonly #slots: FreeShares
  readonly #faults: LeakingCounts
  readonly turns: OutwardTurns

  constructor(max: number, eachMax: number, turns: OutwardOptions, clock: Clock) {
    this.turns = new OutwardTurns(turns, clock)
    this.#slots = new FreeShares(max, eachMax)
    this.#faults = new LeakingCounts(clock, { leakPerSecond: 1, max: faultsMax })
  }

  isShut(client: string): boolean {
    return this.#faults.of(client) > faultsMax - 1
  }

  blame(client: string): void {
    this.#faults.add(client)
  }

  /** A place, to be given back by a call; or why there is none. */
  take(client: string): ReleaseShare | Full {
    return this.isShut(client) ? 'client' : this.#slots.take(client)
  }
}

/**
 * Slots for payments that are being settled. Signatures of plain keys are checked here, before a slot is taken. Those of
 * contracts' wallets (ERC-1271, ERC-6492) cannot be checked here. They have separate slots, so that a flood of false ones does
 * not block the others.
 */
export class Lanes {
  readonly #plain: Lane
  readonly #contracts: Lane
  readonly #doubts = new FreeShares(doubtsMax, doubtsEachMax)
  readonly #doubtingPayers = new Map<string, number>()

  constructor(options: LaneOptions, clock: Clock) {
    this.#plain = new Lane(options.settlementsMax, options.settlementsEachMax, verifyTurns, clock)
    this.#contracts = new Lane(options.contractsMax, options.contractsEachMax, contractTurns, clock)
  }

  /** True: this client brought too many payments lately that came to nothing. */
  isShut(order: PaymentOrder): boolean {
    return this.#of(order).isShut(order.asker)
  }

  /** Counts a payment that failed by the payer's fault. */
  blame(order: PaymentOrder): void {
    this.#of(order).blame(order.asker)
  }

  /**
   * Resolves with undefined when the facilitator may get a request about a payment of which nobody has sent one. It counts
   * as one that came to nothing until `worth` is called.
   */
  turn(order: PaymentOrder): Promise<Refusal | undefined> {
    return this.#of(order).turns.wait(order.asker)
  }

  /** The payment was settled, or it is not the client's fault that it was not. */
  worth(order: PaymentOrder): void {
    this.#of(order).turns.noteUseful(order.asker)
  }

  /** A place for a payment that is to be settled, given back by a call; or why there is none. */
  take(order: PaymentOrder): ReleaseShare | Full {
    return this.#of(order).take(order.asker)
  }

  /** The same for one that only the chain can decide: it takes long, and costs little meanwhile. */
  waitForChain(order: PaymentOrder): ReleaseShare | Full {
    if (heldBy(this.#doubtingPayers, order.payer) >= doubtsOfPayerMax) return 'client'
    const place = this.#doubts.take(order.asker)
    if (typeof place === 'string') return place
    countHeld(this.#doubtingPayers, order.payer, 1)
    let isHeld = true
    return () => {
      if (isHeld) countHeld(this.#doubtingPayers, order.payer, -1)
      isHeld = false
      place()
    }
  }

  #of(order: PaymentOrder): Lane {
    return isOfContract(order) ? this.#contracts : this.#plain
  }
}

/**
 * Signatures longer than those of plain keys are of contract wallets: only the chain can verify them, through the
 * facilitator.
 */
export function isOfContract({ signature }: Pick<PaymentOrder, 'signature'>): boolean {
  return signature.length > 2 + 2 * plainSignatureBytes
}
