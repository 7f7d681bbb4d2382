import type { Log } from '../../actor/log.js'
import type { Cashier } from '../../admission/settlement.js'
import { type Fence, Lead } from '../../ledger/lead.js'
import type { MoneyLedger } from '../../ledger/ledger-port.js'
import type { RequestedSettlement, SharedSettlements } from './shared-settlements.js'
import { usdcTransferId } from './usdc-transfers.js'

export interface LeftSettlementsParts {
  readonly ledger: Pick<MoneyLedger, 'transfer' | 'leads' | 'record' | 'commit'>
  readonly claims: SharedSettlements
  readonly cashier: Pick<Cashier, 'takeUp' | 'find'>
  /** Whether a node of the chain is configured that reports transfers. */
  readonly hasChain: boolean
  /** The same as in `SharedSettlementsOptions`. */
  readonly leftMs: number
  readonly now: () => number
  readonly log: Log
}

/** The chain is searched for some hours only: after that nothing can be found out any more. */
const searchedMs = 4 * 3600_000
/** The reason in the record of a settlement that ended without any answer. */
const unanswered = 'unexpected_settle_error'

/**
 * Finishes settlements that another payment service with the same ledger requested and left, because it died. A second request
 * does no harm: the nonce settles once, and the ledger credits a payment once.
 */
export class LeftSettlements {
  #isWorking = false
  #closed = false
  readonly #lead: Lead

  constructor(private readonly parts: LeftSettlementsParts) {
    this.#lead = new Lead(parts.ledger, 'x402-settlements')
  }

  /** Resolves with how many have ended. One service at a time does it. */
  async work(): Promise<number> {
    if (this.#isWorking) return 0
    this.#isWorking = true
    try {
      const fence = await this.#lead.take()
      return fence === undefined ? 0 : await this.#work(fence)
    } finally {
      this.#isWorking = false
    }
  }

  close(): void {
    this.#closed = true
  }

  async #work(fence: Fence): Promise<number> {
    const { claims, leftMs, now } = this.parts
    let ended = 0
    for await (const settlement of claims.unended()) {
      if (settlement.record.askedMs + leftMs > now()) continue
      const outcome = await this.#end(settlement)
      if (this.#closed) break
      if (outcome === 'ended') {
        // Another service has begun to lead meanwhile.
        if (!(await claims.forget(settlement, fence))) break
        ended += 1
      }
      // The facilitator or the chain is away: the others would wait for it as long.
      if (outcome === 'away') break
    }
    return ended
  }

  async #end(settlement: RequestedSettlement): Promise<'ended' | 'open' | 'away'> {
    const { ledger, claims, cashier, hasChain, now, log } = this.parts
    const { asker, record } = settlement
    const { payment, units, payer } = record
    if ((await ledger.transfer(usdcTransferId(payment))) !== undefined) return 'ended'
    const own = asker === claims.self ? cashier.find(payment) : undefined
    // Its own cashier is at it, or has not credited it yet.
    if (own !== undefined && own.state !== 'failed') return 'open'
    const end = await cashier.takeUp(record)
    if (end === undefined) return 'open'
    const isAway = end.doubtful === true && (hasChain || end.reason === unanswered)
    if (!isAway) return 'ended'
    if (record.validBefore * 1000 + searchedMs > now()) return 'away'
    log.error(
      { payment, units, payer },
      'a payment that another service left open is given up: check on chain whether it was made',
    )
    return 'ended'
  }
}
