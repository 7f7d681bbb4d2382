import type { Cashier } from '../../admission/cashier.js'
import type { MoneyLedger } from '../../ledger/ledger-port.js'
import type { Transfer } from '../../ledger/transfer.js'
import { usdcTransferId } from './usdc-transfers.js'

/**
 * The transfer of a payment that the cashier states as settled. A ledger that came back with older data (a replica, a backup) has
 * lost it: then it is credited again from the record on this disk.
 */
export async function creditedTransfer(
  ledger: Pick<MoneyLedger, 'transfer'>,
  cashier: () => Pick<Cashier, 'creditAgain'>,
  payment: string,
): Promise<Transfer> {
  const found = await ledger.transfer(usdcTransferId(payment))
  if (found !== undefined) return found
  await cashier().creditAgain(payment)
  const credited = await ledger.transfer(usdcTransferId(payment))
  if (credited === undefined) throw new Error(`the payment ${payment} is settled and not credited`)
  return credited
}
