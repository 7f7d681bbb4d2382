import { type Clock, withinTime } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import type { Cashier } from '../../admission/cashier.js'
import { settleFailed } from '../../admission/cashier-messages.js'
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
  /** The same as in `SharedSettlementsOptions`. One settlement holds up the others no longer than that. */
  readonly leftMs: number
  readonly clock: Clock
  readonly log: Log
}

/** So long after its validity a payment is given up: the facilitator and the chain were away all the time. */
const givenUpMs = 7 * 24 * 3600_000
/** Settlements of one batch, and of them at once. */
const batchMax = 64
const atOnceMax = 8
/** The first pause before one that could not be decided is looked at again; it doubles up to the longest. */
const retryMs = 60_000
const retryMaxMs = 3600_000
/**
 * Finishes settlements that another payment service with the same ledger requested and left, because it died. A second request
 * does no harm: the nonce settles once, and the ledger credits a payment once. Each settlement has a time of its own for the next
 * attempt, so those that cannot be decided keep no others waiting. One that takes too long goes on beside the others.
 */
export class LeftSettlements {
  #isWorking = false
  #closed = false
  /** Settlements that were looked at and have not ended: when each is looked at again. */
  #next = new Map<string, Attempt>()
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
    // What is tried again later waits for the next call, so that this one ends.
    const startMs = this.parts.clock.now()
    let ended = 0
    for (;;) {
      const batch = await this.#due(startMs)
      const line = batch.values()
      let leads = true
      const lane = async (): Promise<void> => {
        for (const settlement of line) {
          const outcome = await this.#finishInTime(settlement, fence)
          if (this.#closed || !leads) return
          if (outcome === 'ended') ended += 1
          else if (outcome === 'superseded') leads = false
          else this.#postpone(settlement, outcome)
        }
      }
      await Promise.all(Array.from({ length: atOnceMax }, lane))
      if (batch.length < batchMax || this.#closed || !leads) return ended
    }
  }

  /** The settlements whose time has come, the first due first, `batchMax` at most. */
  async #due(untilMs: number): Promise<RequestedSettlement[]> {
    const next = new Map<string, Attempt>()
    let due: { readonly dueMs: number; readonly settlement: RequestedSettlement }[] = []
    const first = (): typeof due => due.sort((a, b) => a.dueMs - b.dueMs).slice(0, batchMax)
    for await (const settlement of this.parts.claims.unended()) {
      const key = keyOf(settlement)
      const attempt = this.#next.get(key)
      if (attempt !== undefined) next.set(key, attempt)
      const dueMs = Math.max(settlement.record.askedMs + this.parts.leftMs, attempt?.dueMs ?? 0)
      if (dueMs <= untilMs) due.push({ dueMs, settlement })
      if (due.length >= 2 * batchMax) due = first()
    }
    this.#next = next
    return first().map(({ settlement }) => settlement)
  }

  #postpone(settlement: RequestedSettlement, outcome: 'open' | 'away'): void {
    const key = keyOf(settlement)
    const { tries } = this.#next.get(key) ?? { tries: 0 }
    const pauseMs = outcome === 'open' ? retryMs : Math.min(retryMs * 2 ** tries, retryMaxMs)
    const dueMs = this.parts.clock.now() + pauseMs
    this.#next.set(key, { dueMs, tries: outcome === 'open' ? tries : tries + 1 })
  }

  /** As `#finish`, within `leftMs`. One that takes longer goes on: its tokens may be paid for, and not be credited yet. */
  async #finishInTime(settlement: RequestedSettlement, fence: Fence): Promise<Outcome> {
    const { clock, leftMs, log } = this.parts
    const { payment } = settlement.record
    const finishing = this.#finish(settlement, fence).catch((error: unknown): Outcome => {
      log.error({ err: error, payment }, 'a payment that another service left open cannot be ended now')
      return 'away'
    })
    const outcome = await withinTime(clock, leftMs, finishing, 'late' as const)
    if (outcome !== 'late') return outcome
    log.warn({ payment }, 'a payment that another service left open takes long: others come before it')
    return 'away'
  }

  async #finish(settlement: RequestedSettlement, fence: Fence): Promise<Outcome> {
    const outcome = await this.#end(settlement)
    if (outcome !== 'ended' || this.#closed) return outcome
    return (await this.parts.claims.forget(settlement, fence)) ? 'ended' : 'superseded'
  }

  async #end(settlement: RequestedSettlement): Promise<'ended' | 'open' | 'away'> {
    const { ledger, claims, cashier, hasChain, clock, log } = this.parts
    const { asker, record } = settlement
    const { payment, units, payer } = record
    if ((await ledger.transfer(usdcTransferId(payment))) !== undefined) return 'ended'
    const own = asker === claims.self ? cashier.find(payment) : undefined
    // Its own cashier is at it, or has not credited it yet.
    if (own !== undefined && own.state !== 'failed') return 'open'
    const end = await cashier.takeUp(record)
    if (end === undefined) return 'open'
    const isAway = end.doubtful === true && (hasChain || end.reason === settleFailed)
    if (!isAway) return 'ended'
    if (record.validBefore * 1000 + givenUpMs > clock.now()) return 'away'
    log.error(
      { payment, units, payer },
      'a payment that another service left open is given up: check on chain whether it was made',
    )
    return 'ended'
  }
}

/**
 * `open`: it is under way. `away`: it cannot be decided now. `superseded`: another service has begun to lead, or it was requested
 * anew.
 */
type Outcome = 'ended' | 'open' | 'away' | 'superseded'

interface Attempt {
  /** When it is looked at again. */
  readonly dueMs: number
  readonly tries: number
}

const keyOf = ({ asker, record }: RequestedSettlement): string => `${record.payment} ${asker}`
