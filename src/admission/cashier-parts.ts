import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { SettledCredits } from './admission-port.js'
import type { CashierOptions, Kinds } from './cashier-messages.js'
import type { Witness } from './chain-witness.js'
import type { Facilitator } from './facilitator.js'
import type { PaymentOwners } from './payment-owners.js'
import type { PaymentRecords } from './payment-records.js'
import type { SettlementClaims } from './settlement-claims.js'

/** What a `Cashier` is made of: in a gateway, or in a payment service (`X402Processor`). */
export interface CashierParts {
  readonly records: PaymentRecords
  readonly facilitator: Pick<Facilitator, 'verify' | 'settle' | 'supported'>
  readonly credits: SettledCredits
  /** Others that credit the same: gateways with these buckets, services with this ledger. Absent: there are none. */
  readonly claims?: SettlementClaims
  /** Others that sell something else with the same wallet; absent: there are none. */
  readonly owners?: PaymentOwners
  /** A payment counts for its first beneficiary alone. Absent: who calls the cashier compares what it has bought. */
  readonly bindsBeneficiary?: true
  /** Consulted where a facilitator's refusal may be incomplete. */
  readonly witness?: Witness
  readonly kinds: Kinds
  readonly clock: Clock
  readonly log: Log
  readonly options: CashierOptions
}
