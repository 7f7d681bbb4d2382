import { isRefusal } from '../../format/refusal.js'
import type { UsdcPort } from '../../payment/credits-port.js'
import { fixedAnswers, jsonAnswer } from '../requests/upload-answers.js'
import type { PaidFacts, Unsettled } from './sales.js'

/** An order to settle that nobody knows of may still be on its way to a payment service elsewhere for so long. */
export const onWayMs = 90_000

/** Nobody knows yet whether the money moves. */
export const settlementPending = jsonAnswer(
  503,
  { error: 'settlement_pending', message: 'the payment is being settled: retry with the same payment' },
  '\r\nRetry-After: 2',
)

/** It may still move. */
export const stillOpen: Unsettled = { answer: settlementPending, isOpen: true }
const unpaid: Unsettled = { answer: fixedAnswers.unpaid, isOpen: false }

/**
 * What became of a payment for an item or an upload in parts. Moves nothing. `isOnWay`: an order to settle it may not have
 * arrived yet, so that nobody knows of it decides nothing. A payment service of an earlier version keeps nothing for an item that
 * is accepted now: it may refund the payment at once, so the item waits until that service is updated.
 */
export async function paymentOutcome(
  usdc: Pick<UsdcPort, 'outcome'>,
  sale: Parameters<UsdcPort['outcome']>[0],
  isOnWay: boolean,
): Promise<PaidFacts | Unsettled> {
  const outcome = await usdc.outcome(sale)
  if (isRefusal(outcome)) return stillOpen
  if (!outcome.paid)
    return outcome.state === 'open' || (isOnWay && outcome.state === 'unknown') ? stillOpen : unpaid
  if (sale.isAccepting === true && outcome.isKept !== true) return stillOpen
  const { winc, transaction, payer, network, lines } = outcome
  return { winc, transaction, payer, network, lines }
}
