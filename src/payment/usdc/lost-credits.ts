import type { Log } from '../../actor/log.js'
import type { Cashier } from '../../admission/cashier.js'
import type { PaymentRecords } from '../../admission/payment-records.js'
import type { MoneyLedger } from '../../ledger/ledger-port.js'
import { usdcTransferId } from './usdc-transfers.js'

/** Records looked at in one go: one question to the ledger. */
const pageMax = 500

export interface LostCreditsParts {
  readonly ledger: Pick<MoneyLedger, 'transfersNamed'>
  readonly records: Pick<PaymentRecords, 'credited'>
  readonly cashier: Pick<Cashier, 'creditAgain'>
  readonly log: Log
}

/**
 * Credits again what the records on this disk state as credited and the ledger does not have: a database that came back with
 * older data (a replica, a backup) has lost it. The id of the transfer makes that it counts once. Resolves with how many
 * those were.
 */
export async function creditLost({ ledger, records, cashier, log }: LostCreditsParts): Promise<number> {
  let count = 0
  for (let after: Uint8Array | undefined, isOver = false; !isOver; ) {
    const { records: page, next } = records.credited(after, pageMax)
    const ids = page.map(({ payment }) => usdcTransferId(payment))
    const known = new Set((await ledger.transfersNamed(ids)).map(({ id }) => id))
    for (const { payment, units, payer } of page.filter((_, at) => !known.has(ids[at] ?? ''))) {
      log.error({ payment, units, payer }, 'the ledger has lost a settled payment: it is credited again')
      await cashier.creditAgain(payment)
      count += 1
    }
    after = next
    isOver = next === undefined
  }
  return count
}
