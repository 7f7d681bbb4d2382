import type { SettledPayment } from '../../admission/admission-port.js'
import { isSale } from './sale-beneficiary.js'
import type { X402Sales } from './x402-sales.js'
import type { X402TopUps } from './x402-top-ups.js'

/**
 * Credits a settled payment in USDC: reserves it for the item that it buys, or tops up the wallet. `beneficiary`: as in
 * `PaymentOrder`. The cashier calls it until it does not throw, again after a restart. The id of the payment is that of the
 * transfer in the ledger, so it is credited once.
 */
export function creditSettled(
  sales: Pick<X402Sales, 'reserveSettled'>,
  topUps: Pick<X402TopUps, 'creditWallet'>,
  beneficiary: string,
  payment: string,
  settled: SettledPayment,
): Promise<'credited' | 'known'> {
  return isSale(beneficiary)
    ? sales.reserveSettled(beneficiary, payment, settled)
    : topUps.creditWallet(beneficiary, payment, settled)
}
